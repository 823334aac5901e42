"""The data sources `docstrings.*`: prose of a docstring, rows of a package, facts and the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from peekbench.data.dataset_checks import check_dataset, check_sizes
from peekbench.data.loading import hash_rows
from peekbench.errors import DataError
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, TaskGroupEntry
from peekbench.records.data import Dataset, Folders
from peekbench.spec.design import Design
from peekbench_docstrings import DocstringOptions, source
from peekbench_docstrings.extract import extract
from peekbench_docstrings.names import find_telling_names, remove_names
from peekbench_docstrings.prose import extract_sentences
from peekbench_docstrings.recipes import NUMPY, RECIPES, Recipe
from peekbench_docstrings.source import load, task_facts

OPTIONS = DocstringOptions()
SMALL = Recipe(
    task="small",
    title="the small package",
    package="small",
    distribution="small",
    license="free",
    instruction="",
    classes={"air": ("air", "wind/_gust"), "water": ("water",)},
    aliases=frozenset({"sm"}),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Return folders with a cache that the tests of this module share, because filling it takes seconds."""
    return Folders(spec=tmp_path_factory.mktemp("spec"), cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", params=RECIPES, ids=lambda recipe: recipe.task)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    param: Recipe = request.param
    return param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write the sources of the package `SMALL` and return their folder."""
    root = tmp_path / "small"
    for path, text in {
        "air.py": '"""Breathe slowly, and then in again."""\nclass A:\n    def f(self):\n'
        '        """Hold it for as long as you can."""\ndef g():\n    """Blow out all the candles, one by one."""',
        "wind/_gust.py": 'class A:\n    """A sudden rush that takes your hat."""\n',
        "water/__init__.py": 'add_newdoc("f", "g", ("h", """h(x)\n\n    Pour x into the largest glass."""))\n',
        "water/tests/test_water.py": '"""A docstring of a test, which must be skipped."""\n',
        "fire.py": '"""A module that belongs to no class at all."""\n',
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.slow
def test_tasks_are_large_enough_and_clean(recipe: Recipe, folders: Folders) -> None:
    dataset = load(options=OPTIONS, folders=folders, recipe=recipe)
    check_dataset(dataset, recipe.task)
    assert len(dataset.inputs) >= 600
    assert 4 <= len(dataset.class_names) <= 8
    assert min(Counter(dataset.labels).values()) >= 60
    check_sizes(dataset, Design(num_train=(50, 100), num_test=(200,), num_subsamples=1), recipe.task)
    assert dataset.instruction.startswith("The text is")
    texts = [text for text in dataset.inputs if isinstance(text, str)]
    assert len({text.lower() for text in texts}) == len(texts) == len(dataset.inputs)
    for text in texts:
        assert 40 <= len(text) <= 400
        assert text == " ".join(text.split())
        assert not any(markup in text for markup in (">>>", "``", ":class:", ":func:", ":math:", "\n", "\0", "\1"))
        assert not text.startswith(".. ")
    assert dataset.fingerprint == hash_rows(dataset.inputs, dataset.labels, dataset.class_names)
    assert dataset.details["python"] == ".".join(map(str, sys.version_info[:3]))
    assert dataset.details["dropped"]["duplicate"] > 0


def test_texts_do_not_contain_names_that_reveal_their_class(folders: Folders) -> None:
    dataset = load(options=OPTIONS, folders=folders, recipe=NUMPY)
    for name in ("polynomial", "fft", "ma", "f2py"):
        assert not [text for text in dataset.inputs if name in str(text).lower().split()]
    assert not [text for text in dataset.inputs if "numpy." in str(text) and "numpy. " not in str(text)]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Return the sum.\n\nParameters\n----------\nx : int\n    A number.\n", ["Return the sum."]),
        ("f(a,\n  b)\n\nReturn the sum.", ["Return the sum."]),
        ("S.find(sub[, start]) -- Find a part.", ["Find a part."]),
        ("Return the sum.\n\n:param x: A number.", ["Return the sum."]),
        ("Return it.\n\n>>> f(1)\n2\n\nThen some more.", ["Return it.", "Then some more."]),
        ("Return it.\n\n.. deprecated:: 1.0\n   Use g.\n\nThen more.", ["Return it.", "Then more."]),
        ("Does three things:\n\n- one\n- two\n\nAnd it ends.", ["And it ends."]),
        ("The norm is\n\n.. math:: x^2\n\nwhere x is long. It is good.", ["It is good."]),
        ("Title\n=====\n\nWhat it is.", ["What it is."]),
        ("One.\n\nCopyright 1999 by somebody.\n\nTwo.", ["One."]),
        ("See :func:`~a.b.c`, :class:`D`, ``e`` and *f*.", ["See c, D, e and f."]),
        ("Read the :ref:`guide <g>`. Use `this <https://a.b>`_ here.", ["Use this here."]),
        ("As in [1]_ and other places. It works [2]_.", ["It works."]),
        ("Costs :math:`n` steps. Or :math:`\\frac{a}{b}`.", ["Costs n steps."]),
        ("The %(name)s of it. The rest, e.g. This.", ["The rest, e.g. This."]),
        ("(1 / (2 * n)) * ||y - Xw||^2_2 + a * ||w||_1\n\nFit it.", ["Fit it."]),
    ],
)
def test_readable_sentences_are_extracted(docstring: str, expected: list[str]) -> None:
    assert extract_sentences(docstring) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Return a sparse matrix.", "Return a matrix."),
        ("Return a sparse array.", "Return an array."),
        ("Sparse matrices are small.", ""),  # the first word may be a verb
        ("Return a sparse containing ones.", ""),
        ("Use the scipy.sparse package here.", "Use the package here."),
        ("Of the linalg module.", "Of the module."),
        ("Of linalg routines.", "Of linalg routines."),
        ("A non-sparse matrix.", ""),
    ],
)
def test_names_are_removed_from_sentences(sentence: str, expected: str) -> None:
    modules = dict.fromkeys(("sparse", "linalg"))
    assert remove_names(sentence, {"sparse"}, modules, {"scipy", *modules}) == expected


def test_a_name_is_telling_if_most_docstrings_with_it_have_its_class() -> None:
    air, water = (0, ["Air is thin."]), (1, ["Water, in the air."])
    assert "air" in find_telling_names(SMALL, [air, air, water])
    assert "air" not in find_telling_names(SMALL, [air, water])
    assert "water" in find_telling_names(SMALL, [air, water])


def test_rows_are_extracted_from_a_package(root: Path) -> None:
    rows = extract(SMALL, root, DocstringOptions(min_characters=20, max_characters=30))
    assert rows.texts == [
        "Breathe slowly, and then in",
        "Hold it for as long as you",
        "Blow out all the candles, one",
        "Pour x into the largest glass.",
        "A sudden rush that takes your",
    ]
    assert rows.labels == [0, 0, 0, 1, 0]


def test_duplicates_and_short_texts_are_counted(root: Path) -> None:
    (root / "air.py").write_text(
        '"""Said by both, in so many words."""\nclass A:\n    """Said TWICE by one of them."""\n'
        '    def f(self):\n        """Said twice by one of them."""\n    def g(self):\n        """Short."""\n'
    )
    (root / "water" / "b.py").write_text('"""Said by both, in so many words."""\n')
    rows = extract(SMALL, root, DocstringOptions(min_characters=20))
    assert rows.texts[0] == "Said TWICE by one of them."
    assert "Said by both, in so many words." not in rows.texts
    assert (rows.too_short, rows.duplicates, rows.in_several_classes) == (1, 1, 2)


def test_near_duplicates_can_be_dropped(root: Path) -> None:
    (root / "air.py").write_text(
        '"""Breathe in slowly and deeply, then hold your breath for as long as you can."""\nclass A:\n'
        '    """Breathe in slowly and deeply, then hold your breath for as long as she can."""\n'
    )
    kept = {
        likeness: extract(SMALL, root, DocstringOptions(min_characters=20, drop_duplicates=likeness))
        for likeness in ("exact", "near")
    }
    assert len(kept["exact"].texts) == len(kept["near"].texts) + 1
    assert (kept["exact"].duplicates, kept["near"].duplicates) == (0, 1)


def test_damaged_and_missing_sources_are_reported(root: Path) -> None:
    (root / "air.py").write_text("def f(:\n")
    with pytest.raises(DataError, match=r"cannot read .*air\.py: invalid syntax.*; reinstall the package"):
        extract(SMALL, root, DocstringOptions(min_characters=20))
    shutil.rmtree(root / "water")
    (root / "air.py").unlink()
    with pytest.raises(DataError, match=r"docstrings\.small: class 'water' has no text in .*small; install"):
        extract(SMALL, root, DocstringOptions(min_characters=20))


def test_a_missing_package_is_reported_with_the_remedy(folders: Folders) -> None:
    absent = replace(NUMPY, package="numpy_that_is_not_there")
    with pytest.raises(DataError, match=r"docstrings\.numpy: NumPy is not installed.*`pip install numpy`"):
        load(options=OPTIONS, folders=folders, recipe=absent)
    unknown = replace(NUMPY, distribution="numpy-that-is-not-there")
    with pytest.raises(DataError, match=r"docstrings\.numpy: .*distribution"):
        load(options=OPTIONS, folders=folders, recipe=unknown)


def _load_numpy(cache: Path) -> Dataset:
    return load(options=OPTIONS, folders=Folders(spec=cache, cache=cache), recipe=NUMPY)


@pytest.mark.slow
def test_the_cache_is_used_and_regenerated_if_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _load_numpy(tmp_path)
    (file,) = (tmp_path / "docstrings").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    assert _load_numpy(tmp_path) == first
    monkeypatch.setattr(source, "extract", None)
    assert _load_numpy(tmp_path) == first


@pytest.mark.slow
def test_rows_do_not_depend_on_the_hash_seed_and_loading_is_light(tmp_path: Path, folders: Folders) -> None:
    program = (
        "import sys; from peekbench import load_dataset; d = load_dataset('docstrings.numpy'); "
        "heavy = {'numpy', 'pandas', 'scipy'}; "
        "print(d.fingerprint, sorted(heavy & set(sys.modules)))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PEEKBENCH_CACHE": str(tmp_path / cache)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed, cache in (("1", "a"), ("2", "b"), ("3", "b"))
    ]
    fingerprint = load(options=OPTIONS, folders=folders, recipe=NUMPY).fingerprint
    assert outputs == [f"{fingerprint} []"] * 3


@pytest.mark.slow
def test_options_set_the_length_of_texts(folders: Folders) -> None:
    dataset = load(options=DocstringOptions(min_characters=60, max_characters=80), folders=folders, recipe=NUMPY)
    assert {60 <= len(str(text)) <= 80 for text in dataset.inputs} == {True}
    with pytest.raises(ValidationError, match="min_characters 90 .*max_characters 80"):
        DocstringOptions(min_characters=90, max_characters=80)


def test_the_group_all_contains_every_task() -> None:
    offers = registry.load("docstrings").offers["data source"]
    tasks = {name for name, entry in offers.items() if isinstance(entry, DataSourceEntry)}
    group = offers["all"]
    assert isinstance(group, TaskGroupEntry)
    assert set(group.members) == tasks == {"stdlib", "numpy", "scipy", "pandas", "sklearn"}


def test_facts_are_available_without_extracting_a_task(folders: Folders, recipe: Recipe, tmp_path: Path) -> None:
    dataset = load(options=OPTIONS, folders=folders, recipe=recipe)
    known = task_facts(folders, recipe)
    assert (known.num_classes, known.num_rows) == (len(dataset.class_names), len(dataset.inputs))
    lengths = sorted(map(len, dataset.inputs))
    assert known.characters is not None
    assert known.characters[0] == pytest.approx(lengths[len(lengths) // 4], abs=1)
    assert known.characters[1] == pytest.approx(lengths[3 * len(lengths) // 4], abs=1)
    unknown = task_facts(Folders(tmp_path, tmp_path / "empty"), recipe)
    assert (unknown.num_classes, unknown.num_rows, unknown.license) == (known.num_classes, None, known.license)
