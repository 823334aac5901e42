"""The audit of n-gram overlap: words, index, corpora and findings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peekbench import Analysis, Context, DataError, Dataset, Folders
from peekbench.errors import SpecError
from peekbench.spec.components import AuditSpec, make_component
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE
from peekbench_overlap import Ngram
from peekbench_overlap import index as index_module
from peekbench_overlap.corpus import find_files, read_pieces
from peekbench_overlap.index import BOUNDARY, NgramIndex, split_texts
from peekbench_overlap.ngram import FEW_FOUND, TOO_FEW, TOO_FEW_UNSEEN, ngram
from peekbench_testing import check_entry

WORDS = [f"w{number}" for number in range(60)]


def make_texts(number: int, seed: int, length: int = 12) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=length)) for _ in range(number)]


def audit(tasks: dict[str, list[str]], splits: tuple[Any, ...] = (), **options: Any) -> Analysis:
    datasets = {name: Dataset(texts, [0] * len(texts), splits=splits) for name, texts in tasks.items()}
    return ngram(datasets, options=Ngram(**options), context=Context(1, 1, Folders(Path(), Path())))


def cells(analysis: Analysis, title: str) -> list[dict[str, Any]]:
    (table,) = (table for table in analysis.tables if title in table.title)
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]


def save(path: str, texts: list[str]) -> Path:
    Path(path).write_text("\n".join(json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)))
    return Path(path)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# Words and index


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's  A-B_c 3.5\n\tx", ["it", "s", "a", "b", "c", "3", "5", "x"]),
        ("“Straße” — café…", ["strasse", "café"]),
        ("cafe\N{COMBINING ACUTE ACCENT}", ["café"]),
        ("a\x01b", ["a", "b"]),
        ("", []),
        ("!?", []),
    ],
)
def test_words_are_independent_of_case_punctuation_and_neighbors(text: str, words: list[str]) -> None:
    expected = [word.encode() for word in words]
    assert split_texts([text]) == expected
    assert split_texts(["é", text, "b"]) == ["é".encode(), BOUNDARY, *expected, BOUNDARY, b"b"]


def test_the_index_finds_the_same_n_grams_as_a_search_of_strings() -> None:
    generator = np.random.default_rng(0)
    indexed, searched = (
        [[b"%d" % word for word in generator.integers(0, 3, size=size)] for size in generator.integers(0, 14, 60)]
        for _ in range(2)
    )
    index = NgramIndex(indexed, (2, 4, 7))
    joined = [word for text in searched for word in (*text, BOUNDARY)]
    matches = index.search(joined)

    def grams(text: list[bytes], n: int) -> list[tuple[bytes, ...]]:
        return [tuple(text[start : start + n]) for start in range(len(text) - n + 1)]

    for n in index.lengths:
        key_of = {
            gram: key
            for text, keys in zip(indexed, index.keys[n], strict=True)
            for gram, key in zip(grams(text, n), keys.tolist(), strict=True)
        }
        assert len(key_of) == index.num_keys(n)
        found = [(key_of[gram], row) for row, text in enumerate(searched) for gram in grams(text, n) if gram in key_of]
        assert list(zip(matches[n].keys.tolist(), matches[n].texts.tolist(), strict=True)) == found
        assert found, "an empty search would prove nothing"


def test_searching_nothing_and_searching_for_nothing() -> None:
    words = [b"%d" % number for number in range(13)]
    index = NgramIndex([words], (8, 13))
    for length in range(14):
        found = index.search(words[:length])
        assert [len(found[n].keys) for n in (8, 13)] == [max(0, length - 7), length // 13]
    assert NgramIndex([[b"a"], []], (2,)).search([b"a", b"b"])[2].keys.tolist() == []


# Corpora

TEXTS = ["first text", 'second, "quoted"', "third\nline"]


def write_corpus(path: Path) -> None:
    kind = path.suffixes[0]
    if kind == ".parquet":
        pq.write_table(pa.table({"id": [1, 2, 3], "text": TEXTS}), path)
        return
    if kind == ".jsonl":
        content = "\n".join(json.dumps({"id": 1, "deep": {"text": [text]}}) for text in TEXTS)
    elif kind == ".csv":
        content = "id,text\n" + "\n".join('1,"{}"'.format(text.replace('"', '""')) for text in TEXTS)
    else:
        content = "\n".join(TEXTS)
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(content)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.gz", "a.csv", "a.parquet"])
def test_all_texts_of_a_corpus_are_read(name: str) -> None:
    write_corpus(Path(name))
    text = " ".join(piece for _, piece in read_pieces(Path(name), Ngram()))
    assert all(part in text for part in TEXTS)


def test_plain_text_is_read_in_pieces_that_lose_no_n_gram() -> None:
    words = [f"word{number}" for number in range(60_000)]
    lines = [" ".join(words[start : start + 7]) for start in range(0, 30_000, 7)]
    Path("long.txt").write_text("\n".join(lines) + " " + " ".join(words[30_002:]))  # the last line is long
    pieces = list(read_pieces(Path("long.txt"), Ngram(n=5)))
    assert len(pieces) > 5
    assert max(len(text) for _, text in pieces) < 3 * 2**16
    grams = {
        tuple(split[start : start + 5]) for _, text in pieces for split in [text.split()] for start in range(len(split))
    }
    assert all(tuple(words[start : start + 5]) in grams for start in range(59_995))
    second_line, second = pieces[1]
    assert lines[second_line - 1].split()[0] in second


@pytest.mark.parametrize("separator", ["\t", ",", " - - - "])
def test_a_long_line_loses_no_n_gram(separator: str) -> None:
    """Words are separated by tabs, by no white space, or by parts without a letter."""
    words = [f"word{number}" for number in range(30_000)]
    Path("line.txt").write_text(separator.join(words))
    pieces = [text for _, text in read_pieces(Path("line.txt"), Ngram(n=5))]
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 4 * 2**16
    split = [split_texts([text]) for text in pieces]
    grams = {tuple(words[start : start + 5]) for words in split for start in range(len(words))}
    expected = [word.encode() for word in words]
    assert all(tuple(expected[start : start + 5]) in grams for start in range(29_996))


def test_the_fields_of_a_corpus_can_be_chosen() -> None:
    Path("a.jsonl").write_text('{"text": "one", "other": "two"}\n\n{"text": "three"}\n')
    Path("a.csv").write_text("text,other\none,two\nthree,\n")
    for name in ("a.jsonl", "a.csv"):
        assert [text for _, text in read_pieces(Path(name), Ngram(fields="text"))] == ["one", "three"]
        with pytest.raises(DataError, match=rf"{name}.*txet"):
            list(read_pieces(Path(name), Ngram(fields="txet")))


def test_unreadable_corpora_are_errors() -> None:
    here = Path()
    for name, content, message in [
        ("a.jsonl", b'{"text": "a"}\n{"text"', "a.jsonl, line 2: not valid JSON"),
        ("a.csv", b"a,b\n1,2,3\n", "a.csv, line 2: 3 fields, but the header has 2"),
        ("a.txt", b"\xff\xfe\x00", "a.txt is not UTF-8"),
        ("a.txt.gz", gzip.compress(b"abc" * 1000, mtime=0)[:20], "cannot read a.txt.gz"),
        ("a.parquet", b"no", "cannot read a.parquet"),
    ]:
        Path(name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            list(read_pieces(Path(name), Ngram()))
    with pytest.raises(DataError, match=r"missing.jsonl does not exist"):
        find_files(Path("missing.jsonl"), here)
    with pytest.raises(DataError, match="no file matches"):
        find_files(Path("none/*.jsonl"), here)
    Path("a.bin").touch()
    with pytest.raises(DataError, match=r"a.bin has no known format"):
        find_files(Path("a.bin"), here)
    with pytest.raises(DataError, match="is not a file"):
        find_files(Path(), here)


def test_options_are_checked() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"n": [8, 8]}, "duplicate"),
        ({"n": 1}, "too short"),
    ]
    for options, message in cases:
        with pytest.raises(SpecError, match=message):
            make_component(AuditSpec, "overlap.ngram", options)


# Findings


def test_texts_in_a_corpus_are_found_with_their_place() -> None:
    texts = make_texts(40, 0)
    texts[3] = f"\x1b[31m{texts[3]}"
    save("b.jsonl", [*make_texts(300, 1), *(text.upper().replace(" ", ", ") for text in texts[:30])])
    save("a.jsonl", make_texts(300, 2))
    analysis = audit({"t": texts}, corpora=["*.jsonl", "a.jsonl"], n=(4, 8))
    rows = cells(analysis, "Which texts")
    assert [(row["corpus"], row["n"]) for row in rows] == [
        ("*.jsonl", 4),
        ("a.jsonl", 4),
        ("*.jsonl", 8),
        ("a.jsonl", 8),
    ]
    assert [row["texts found"] for row in rows] == [0.75, 0, 0.75, 0]
    assert [row["finding"] for row in rows] == [EXPOSED, NO_EXPOSURE, EXPOSED, NO_EXPOSURE]
    (amount, *_) = cells(analysis, "How much")
    assert amount["with a hit"] >= 0.75
    examples = cells(analysis, "Texts that")
    assert [row["n-grams found"] for row in examples] == [1] * 5
    assert examples[0]["place"] == "b.jsonl, line 301"


def test_templates_do_not_count() -> None:
    """All texts share a phrase that is also in the corpus; the texts themselves are not."""
    phrase = " ".join(WORDS[:20])
    texts = [f"{phrase} {text}" for text in make_texts(40, 0, length=10)]
    save("a.jsonl", [f"{phrase} {text}" for text in make_texts(40, 1, length=10)])
    (row,) = cells(audit({"t": texts}, corpora="a.jsonl", n=8), "Which texts")
    assert (row["texts found"], row["finding"]) == (0, NO_EXPOSURE)


def test_few_found_texts_are_inconclusive_unless_unseen_texts_are_given() -> None:
    texts = make_texts(200, 0)
    save("a.jsonl", texts[:16])
    (row,) = cells(audit({"t": texts}, corpora="a.jsonl", n=8), "Which texts")
    assert (row["expected"], row["finding"]) == (0.1, FEW_FOUND)
    (row,) = cells(audit({"t": texts, "new": make_texts(200, 7)}, corpora="a.jsonl", n=8, unseen="new"), "Which texts")
    assert (row["expected"], row["finding"]) == (0, EXPOSED)
    (row,) = cells(audit({"t": texts}, corpora="a.jsonl", n=8, clean_share=0.02), "Which texts")
    assert row["finding"] == EXPOSED


def test_unseen_texts_that_differ_make_a_finding_inconclusive() -> None:
    texts, other = make_texts(100, 0), [text.replace("w", "v") for text in make_texts(100, 1)]
    save("a.jsonl", texts[:50])
    analysis = audit({"t": [*texts, "same"], "new": [*other, "same"]}, corpora="a.jsonl", n=8, unseen="new")
    (row,) = cells(analysis, "Which texts")
    assert row["finding"].startswith("inconclusive: the unseen texts differ in words")
    assert "left out: t (1)" in analysis.warnings[0]


def test_too_few_unseen_texts_are_inconclusive() -> None:
    texts = make_texts(40, 0)
    save("a.jsonl", texts)
    cases: list[tuple[list[str], Any, int]] = [
        ([" ".join(WORDS[:5])] * 40, None, 40),  # shorter than an n-gram
        (make_texts(9, 1), 0, 40),
        (texts[:20], None, 20),  # all unseen texts are audited texts
        (texts, None, 0),  # and the reverse
    ]
    for unseen, expected, num_audited in cases:
        analysis = audit({"t": texts, "new": unseen}, corpora="a.jsonl", n=8, unseen="new")
        (row,) = cells(analysis, "Which texts")
        assert row["finding"] == (TOO_FEW_UNSEEN if num_audited else TOO_FEW)
        assert row["expected"] == expected
        assert cells(analysis, "How much")[0]["texts"] == num_audited


def test_the_test_split_is_searched_for_in_the_train_split() -> None:
    train, test = make_texts(50, 0), make_texts(50, 1)
    splits = ("train",) * 50 + ("test",) * 50
    clean = audit({"t": [*train, *test]}, splits, n=8)
    leaky = audit({"t": [*train, *train[:20], *test[20:]]}, splits, n=8)
    for analysis, found, finding in ((clean, 0, NO_EXPOSURE), (leaky, 0.4, EXPOSED)):
        (row,) = cells(analysis, "Which texts")
        assert (row["corpus"], row["texts found"], row["finding"]) == ("train split", found, finding)


def test_repetition_within_a_task_is_reported() -> None:
    texts = make_texts(30, 0)
    (row,) = cells(audit({"t": [*texts, *texts[:10], *["too short"] * 40]}, n=8), "repeat")
    assert (row["texts"], row["shorter than n"], row["found in other rows"]) == (80, 0.5, 0.25)


def test_a_task_of_short_texts_is_inconclusive() -> None:
    save("a.jsonl", ["two words"])
    analysis = audit({"t": ["two words", "more words here"] * 10}, corpora="a.jsonl", n=8)
    (row,) = cells(analysis, "Which texts")
    assert row["finding"] == TOO_FEW
    assert "fewer than 8 words" in analysis.warnings[0]


def test_tasks_without_texts_and_unknown_tasks_are_refused() -> None:
    numbers = {"t": Dataset(np.zeros((20, 2)), np.zeros(20), kind="regression")}
    with pytest.raises(DataError, match="task t: its inputs are not texts"):
        ngram(numbers, options=Ngram(), context=Context(1, 1, Folders(Path(), Path())))
    with pytest.raises(SpecError, match="did you mean 'later'"):
        audit({"t": make_texts(20, 0), "later": make_texts(20, 1)}, unseen="latre")
    with pytest.raises(SpecError, match="only task"):
        audit({"t": make_texts(20, 0)}, unseen="t")


def test_memory_does_not_grow_with_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are searched while the corpus is being read."""
    events = []

    def read() -> Any:
        for number in range(6):
            events.append("read")
            yield number, "x" * 60

    for positions, _ in index_module.batches(read(), 100):
        events.append(f"search {positions}")
    assert events == ["read", "read", "search [0, 1]"] * 1 + [
        "read",
        "read",
        "search [2, 3]",
        "read",
        "read",
        "search [4, 5]",
    ]


@pytest.mark.slow
def test_the_contract_is_fulfilled() -> None:
    save("a.jsonl", make_texts(20, 0))
    assert all(
        outcome.passed for outcome in check_entry("overlap.ngram", {"corpora": [str(Path("a.jsonl").resolve())]})
    )
