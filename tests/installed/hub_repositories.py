"""Small dataset repositories in the layout that each of the 25 tasks really has on the Hub.

Written down independently of the plugin's records: file names, columns, types and label codes are those of the Hub's
repositories, the rows are made up.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 40
LONG = "long " * 300
CONVERSION = "refs@convert@parquet"

Kind = Literal["names", "numbers", "strings"]


@dataclass(frozen=True)
class Layout:
    """One repository."""

    repository: str
    files: tuple[str, ...]
    text: tuple[str, ...]
    label: str
    labels: Sequence[Any]
    """As they stand in the file, in the order of the classes."""
    names: tuple[str, ...] = ()
    """Of a ClassLabel."""
    branch: str = "main"
    script: bool = False
    others: Mapping[str, Callable[[int], Any]] = field(default_factory=dict)
    """Further columns."""
    left_out: tuple[str | None, ...] = ()
    """Texts of rows that the task is to leave out."""
    stray: tuple[str, ...] = ()
    """Files that are there too, and count for nothing."""


def class_label(*names: str) -> dict[str, Any]:
    return {"names": names, "labels": range(len(names))}


MASSIVE = (
    "social", "transport", "calendar", "play", "news", "datetime", "recommendation", "email", "iot", "general",
    "audio", "lists", "qa", "cooking", "takeaway", "music", "alarm", "weather",
)  # fmt: skip
MTOP = (
    "messaging", "calling", "event", "timer", "music", "weather", "alarm", "people", "reminder", "recipes", "news",
)  # fmt: skip
YAHOO = (
    "Society & Culture", "Science & Mathematics", "Health", "Education & Reference", "Computers & Internet", "Sports",
    "Business & Finance", "Entertainment & Music", "Family & Relationships", "Politics & Government",
)  # fmt: skip
PATENT = (
    "Human Necessities", "Performing Operations; Transporting", "Chemistry; Metallurgy", "Textiles; Paper",
    "Fixed Constructions", "Mechanical Engineering; Lightning; Heating; Weapons; Blasting", "Physics", "Electricity",
    "General tagging of new or cross-sectional technology",
)  # fmt: skip

LAYOUTS: Mapping[str, Layout] = {
    "ag_news": Layout(
        "fancyzhx/ag_news", ("data/train-00000-of-00001.parquet",), ("text",), "label",
        **class_label("World", "Sports", "Business", "Sci/Tech"), stray=("data/test-00000-of-00001.parquet",),
    ),
    "amazon_counterfactual_en": Layout(
        "SetFit/amazon_counterfactual_en", ("train.jsonl",), ("text",), "label", (0, 1),
        others={"label_text": lambda row: ("not-counterfactual", "counterfactual")[row % 2]}, stray=("test.jsonl",),
    ),
    "app_reviews": Layout(
        "sealuzh/app_reviews", ("data/train-00000-of-00001.parquet",), ("review",), "star", (1, 2, 3, 4, 5),
        others={"package_name": lambda row: "com.mantz_it.rfanalyzer", "date": lambda row: "October 12 2016"},
    ),
    "blog_authorship_corpus": Layout(
        "barilan/blog_authorship_corpus",
        ("blog_authorship_corpus/train/0000.parquet", "blog_authorship_corpus/train/0001.parquet"),
        ("text",), "gender", ("female", "male"), branch=CONVERSION, script=True, left_out=(LONG,),
        others={"date": lambda row: "14,May,2004", "age": lambda row: 15, "horoscope": lambda row: "Leo"},
        stray=("blog_authorship_corpus/validation/0000.parquet",),
    ),
    "clickbait_notclickbait_dataset": Layout(
        "christinacdl/clickbait_notclickbait_dataset", ("train.json",), ("text",), "label", (0, 1),
        stray=("val.json", "test.json"),
    ),
    "climate_fever": Layout(
        "tdiggelm/climate_fever", ("data/test-00000-of-00001.parquet",), ("claim",), "claim_label",
        **class_label("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "DISPUTED"),
        others={"claim_id": str, "evidences": lambda row: [{"evidence_id": "a:1", "votes": ["SUPPORTS", None]}]},
    ),
    "craigslist_bargains": Layout(
        "aladar/craigslist_bargains", ("train.csv",), ("text",), "label", range(6), left_out=("",),
        stray=("validation.csv", "test.csv"),
    ),
    "disaster_response_messages": Layout(
        "community-datasets/disaster_response_messages", ("data/train-00000-of-00001.parquet",), ("message",), "genre",
        ("direct", "news", "social"), left_out=("", LONG),
        others={"split": lambda row: "train", "original": lambda row: None, "related": lambda row: 1},
        stray=("data/test-00000-of-00001.parquet", "data/validation-00000-of-00001.parquet"),
    ),
    "emo": Layout(
        "aladar/emo", ("emo-train.arrow",), ("text",), "label", **class_label("others", "happy", "sad", "angry"),
        stray=("emo-test.arrow",),
    ),
    "emotion": Layout(
        "dair-ai/emotion", ("split/train-00000-of-00001.parquet",), ("text",), "label",
        **class_label("sadness", "joy", "love", "anger", "fear", "surprise"),
        stray=("split/test-00000-of-00001.parquet", "unsplit/train-00000-of-00001.parquet"),
    ),
    "enron_spam": Layout(
        "SetFit/enron_spam", ("train.jsonl",), ("text",), "label", (0, 1), left_out=("",),
        others={"message_id": int, "label_text": lambda row: ("ham", "spam")[row % 2], "subject": str, "message": str},
        stray=("test.jsonl", "enron_spam_data.csv", "prepare.py"),
    ),
    "financial_phrasebank": Layout(
        "takala/financial_phrasebank", ("sentences_allagree/train/0000.parquet",), ("sentence",), "label",
        **class_label("negative", "neutral", "positive"), branch=CONVERSION, script=True,
        stray=("sentences_50agree/train/0000.parquet", "sentences_75agree/train/0000.parquet"),
    ),
    "frenk_hate_en": Layout(
        "classla/FRENK-hate-en", ("binary/train/0000.parquet",), ("text",), "topic", ("lgbt", "migrants"),
        branch=CONVERSION, script=True, left_out=(LONG,),
        others={"target": lambda row: "No target", "label": lambda row: row % 2},
        stray=("binary/test/0000.parquet", "multiclass/train/0000.parquet"),
    ),
    "hyperpartisan_news_detection": Layout(
        "SemEvalWorkshop/hyperpartisan_news_detection",
        (
            "data/articles-training-bypublisher-20181122.zip",
            "data/ground-truth-training-bypublisher-20181122.zip",
        ),
        ("title",), "hyperpartisan", ("false", "true"), script=True, left_out=("",),
        stray=("data/articles-training-byarticle-20181122.zip", "data/articles-validation-bypublisher-20181122.zip"),
    ),
    "limit": Layout(
        "IBM/limit", ("default/train/0000.parquet",), ("sentence",), "motion", ("no", "yes"), branch=CONVERSION,
        script=True, others={"id": int, "motion_entities": lambda row: [{"entity": "x", "start_index": 1}]},
        stray=("default/test/0000.parquet",),
    ),
    "massive": Layout(
        "AmazonScience/massive", ("en-US/train/0000.parquet",), ("utt",), "scenario", **class_label(*MASSIVE),
        branch=CONVERSION, script=True, others={"id": str, "locale": lambda row: "en-US", "intent": int},
        stray=("en-US/test/0000.parquet", "de-DE/train/0000.parquet"),
    ),
    "movie_rationales": Layout(
        "eraser-benchmark/movie_rationales", ("default/train/0000.parquet",), ("review",), "label",
        **class_label("NEG", "POS"), branch=CONVERSION, script=True, others={"evidences": lambda row: ["so good"]},
        stray=("default/test/0000.parquet",),
    ),
    "mtop_domain": Layout(
        "mteb/mtop_domain", ("en/train.jsonl",), ("text",), "label_text", MTOP, script=True,
        others={"id": int, "label": lambda row: row % 11}, stray=("de/train.jsonl", "en/test.jsonl"),
    ),
    "patent_classification": Layout(
        "ccdv/patent-classification", ("abstract/train-00000-of-00001.parquet",), ("text",), "label",
        **class_label(*PATENT), left_out=(LONG,), stray=("patent/train-00000-of-00001.parquet",),
    ),
    "rotten_tomatoes": Layout(
        "cornell-movie-review-data/rotten_tomatoes", ("train.parquet",), ("text",), "label",
        **class_label("neg", "pos"), stray=("test.parquet", "validation.parquet"),
    ),
    "silicone": Layout(
        "eusip/silicone", ("dyda_da/train/0000.parquet",), ("Utterance",), "Label",
        **class_label("commissive", "directive", "inform", "question"), branch=CONVERSION, script=True,
        others={"Dialogue_Act": lambda row: "inform", "Dialogue_ID": lambda row: "0", "Idx": int},
        stray=("dyda_e/train/0000.parquet", "dyda_da/test/0000.parquet"),
    ),
    "trec": Layout(
        "CogComp/trec", ("default/train/0000.parquet",), ("text",), "coarse_label",
        **class_label("ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"), branch=CONVERSION, script=True,
        others={"fine_label": int}, stray=("default/test/0000.parquet",),
    ),
    "tweets_hate_speech_detection": Layout(
        "tweets-hate-speech-detection/tweets_hate_speech_detection", ("data/train-00000-of-00001.parquet",),
        ("tweet",), "label", **class_label("no-hate-speech", "hate-speech"),
        stray=("data/test-00000-of-00001.parquet",),
    ),
    "yahoo_answers_topics": Layout(
        "community-datasets/yahoo_answers_topics",
        (
            "yahoo_answers_topics/train-00000-of-00002.parquet",
            "yahoo_answers_topics/train-00001-of-00002.parquet",
        ),
        ("question_title", "question_content"), "topic", **class_label(*YAHOO),
        others={"id": int, "best_answer": str}, stray=("yahoo_answers_topics/test-00000-of-00001.parquet",),
    ),
    "yelp_review_full": Layout(
        "Yelp/yelp_review_full", ("yelp_review_full/train-00000-of-00001.parquet",), ("text",), "label",
        **class_label("1 star", "2 star", "3 stars", "4 stars", "5 stars"),
        stray=("yelp_review_full/test-00000-of-00001.parquet",),
    ),
}  # fmt: skip


def sentence(task: str, row: int, part: int = 0) -> str:
    """The text of a row that counts."""
    return f"{task} says in sentence {row}, part {part}: 2024-01-{row % 28 + 1:02}, caf\u00e9, \U0001f600"


def write_repository(task: str, folder: Path, *, layout: Layout | None = None) -> Path:
    """Write the repository below `folder`/datasets; returns the branch's folder."""
    layout = layout or LAYOUTS[task]
    root = folder / "datasets" / layout.repository
    branch = root / layout.branch
    records = [
        _record(layout, row, [sentence(task, row, part) for part in range(len(layout.text))]) for row in range(ROWS)
    ]
    records += [_record(layout, row, [text] * len(layout.text)) for row, text in enumerate(layout.left_out)]
    if layout.files[0].endswith(".zip"):
        _write_xml(branch, layout, records)
    else:
        size = -(-len(records) // len(layout.files))
        for number, name in enumerate(layout.files):
            write_file(branch / name, records[number * size : (number + 1) * size], layout)
    for name in layout.stray:
        (branch / name).parent.mkdir(parents=True, exist_ok=True)
        (branch / name).write_bytes(b"not to be read")
    if layout.script:
        main = root / "main"
        main.mkdir(parents=True, exist_ok=True)
        (main / f"{layout.repository.partition('/')[2]}.py").write_text("raise RuntimeError('never to be run')\n")
    return branch


def _record(layout: Layout, row: int, texts: Sequence[str | None]) -> dict[str, Any]:
    return {
        **{name: make(row) for name, make in layout.others.items()},
        **dict(zip(layout.text, texts, strict=True)),
        layout.label: layout.labels[row % len(layout.labels)],
    }


def write_file(path: Path, records: Sequence[Mapping[str, Any]], layout: Layout) -> None:
    """Write records in the format of the path's suffix, ClassLabel names as the `datasets` library writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
        return
    if path.suffix in (".jsonl", ".json"):
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
        return
    table = pa.Table.from_pylist([dict(record) for record in records])
    if layout.names:
        feature = {"names": layout.names, "_type": "ClassLabel"}
        described = {"info": {"features": {layout.label: feature}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(described)})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _write_xml(branch: Path, layout: Layout, records: Sequence[Mapping[str, Any]]) -> None:
    """Articles and labels, as SemEval-2019 task 4 has them."""
    from xml.sax.saxutils import quoteattr

    articles, labels = (branch / name for name in layout.files)
    articles.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(articles, "w", zipfile.ZIP_DEFLATED) as archive:
        rows = "".join(
            f'<article id="{row:07}" published-at="2018-01-01" title={quoteattr(record["title"])}>'
            '<p>Some <a href="" type="internal">text</a> &amp; more.</p></article>\n'
            for row, record in enumerate(records)
        )
        archive.writestr("articles.xml", f"<?xml version='1.0'?><articles>{rows}</articles>")
    with zipfile.ZipFile(labels, "w", zipfile.ZIP_DEFLATED) as archive:
        rows = "".join(
            f'<article id="{row:07}" hyperpartisan="{record["hyperpartisan"]}" bias="left" labeled-by="publisher"/>\n'
            for row, record in enumerate(records)
        )
        archive.writestr("ground-truth.xml", f"<?xml version='1.0'?><articles>{rows}</articles>")
