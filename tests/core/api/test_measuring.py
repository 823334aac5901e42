"""`peekbench.measure`: functions and pipelines without a plugin."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peekbench as pb
from peekbench.data.loading import load_dataset
from peekbench.errors import PluginError, RunWarning, StoreError
from peekbench.plugins.session_code import hash_thing
from peekbench.records.data import SourceRef

FIT = """
def fit(unlabeled, train, task, seed, weight: float = 1.0):
    counts = np.bincount(train.labels, minlength=task.num_classes) + weight
    return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))
"""


USED = """
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
import helper_of_notebook

WEIGHTS = np.array([1.5])
PATTERN = re.compile("a+")
unused = object()

class Base:
    @staticmethod
    def apply(x):
        return x + 3

@dataclass
class Model(Base):
    shift = 0
    size: int = 5

@cache
def cached(x):
    return x * 7

class Slotted:
    __slots__ = ("share",)
    def __init__(self):
        self.share = 1

class Items(list): pass
class Lookup(dict): pass
def tagged(x): return x
tagged.share = 12
TABLE = {"f": cached}
SLOTTED, ITEMS, LOOKUP = Slotted(), Items(), Lookup()
SLOTTED.share = 8
ITEMS.share = 4
LOOKUP.share = 6
COUNTS = defaultdict(lambda: 0.1)
helper_of_notebook.share = 10
A, B = [1], [1]
PAIR = (A, A)
"""


def in_session(source: str) -> Any:
    """A function of a notebook."""
    namespace: dict[str, Any] = {"np": np, "__name__": "__main__"}
    exec(source, namespace)
    return namespace["fit"]


def measure(fit: Any, num_subsamples: int = 2, **options: Any) -> pb.Run:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}
    return pb.measure(fit, ["toy.words"], design=design, progress=False, **options)


def test_a_function_of_a_notebook_makes_a_new_run_unless_the_run_has_a_name() -> None:
    first = measure(in_session(FIT), options={"weight": 2.0})
    assert (first.finished, first.failed, first.spec.methods[0].name) == (2, 0, "fit")
    again = measure(in_session(FIT), options={"weight": 2.0})
    assert (again.finished, again.resumed) == (2, 0)
    assert again.name != first.name
    assert len(pb.load_run(first.name).arms) == 2
    assert measure(in_session(FIT), name="mine").finished == 2
    assert measure(in_session(FIT), name="mine").resumed == 2
    with pytest.raises(StoreError, match="(?s)fit changed.*choose another name") as caught:
        measure(in_session(FIT.replace("+ weight", "* weight + 1")), name="mine")
    assert "allow" not in str(caught.value)


def test_each_method_of_a_named_run_is_resumed_and_compared_alone() -> None:
    other = FIT.replace("+ weight", "+ 2 * weight")
    methods = {"a.py": in_session(FIT), "b": in_session(other), "c": "toy.constant"}
    assert measure(methods, name="several").finished == 6
    assert measure(methods, name="several").resumed == 6
    assert measure(methods | {"d": in_session(FIT)}, name="several").finished == 2
    with pytest.raises(StoreError, match="plugin __main__:b, 2 trials: b changed"):
        measure(methods | {"b": in_session(FIT), "d": in_session(FIT)}, name="several")


def test_more_subsamples_extend_a_run_whose_verdicts_account_for_earlier_reports() -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 2}
    first = pb.measure(in_session(FIT), "toy.words", name="mine", design=design, progress=False)
    assert first.report().verdicts
    design["num_subsamples"] = 4
    more = pb.measure(in_session(FIT), "toy.words", name="mine", design=design, progress=False)
    assert (more.name, more.finished, more.resumed) == (first.name, 2, 2)
    evidence: Any = more.report().verdicts[0].evidence
    assert evidence.looks.earlier == (2,)


@pytest.mark.parametrize(
    ("used", "old", "new"),
    [
        ("word in {'good', 'bad'}", "bad", "poor"),
        ("WEIGHTS.sum()", "1.5", "2.5"),
        ("PATTERN.match(word)", "a+", "b+"),
        ("Model().shift", "shift = 0", "shift = 1"),
        ("Model().apply(1)", "+ 3", "- 3"),
        ("Model().size", "size: int = 5", "size: int = 6"),
        ("cached(1)", "* 7", "/ 7"),
        ("TABLE['f']", "* 7", "/ 7"),
        ("Slotted().share", "self.share = 1", "self.share = 2"),
        ("SLOTTED.share", "share = 8", "share = 9"),
        ("ITEMS.share", "share = 4", "share = 5"),
        ("LOOKUP.share", "share = 6", "share = 7"),
        ("COUNTS[word]", "lambda: 0.1", "lambda: 0.2"),
        ("helper_of_notebook.share", "share = 10", "share = 11"),
        ("tagged(word)", "share = 12", "share = 13"),
        ("PAIR[1][0]", "PAIR = (A, A)", "PAIR = (A, B)"),
        ("helper_of_notebook.look_up(word)", "AWAY", "NEAR"),
    ],
)
def test_what_a_function_uses_is_part_of_its_hash(
    used: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would use it for code of the same size and second
    helper = "def look_up(word):\n    return 'AWAY'\n"
    code, hashes = f"{USED}\ndef fit(train, word):\n    return {used}\n", []
    for source, text in ((code, helper), (code, helper), (code.replace(old, new), helper.replace(old, new))):
        (tmp_path / "helper_of_notebook.py").write_text(text)
        sys.modules.pop("helper_of_notebook", None)
        hashes.append(hash_thing(in_session(source)))
    sys.modules.pop("helper_of_notebook", None)
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_cannot_be_compared_is_an_error() -> None:
    guard = "import threading\nLOCK = threading.Lock()\ndef fit(train):\n    return LOCK\n"
    with pytest.raises(PluginError, match=r"type _thread\.lock, whose content .* cannot compare.*leave out `name`"):
        hash_thing(in_session(guard))
    deep = "NESTED = []\nfor _ in range(5000):\n    NESTED = [NESTED]\ndef fit(train):\n    return NESTED\n"
    with pytest.raises(PluginError, match="nested too deeply"):
        hash_thing(in_session(deep))
    empty = "def make():\n    def fit(train):\n        return shift\n    return fit\n    shift = 1\nfit = make()\n"
    with pytest.raises(PluginError, match="fit uses the variable 'shift' .* has no value yet"):
        hash_thing(in_session(empty))


def test_a_warning_names_the_line_of_the_caller() -> None:
    first_fails = FIT.replace("counts =", "CALLS.append(1)\n    counts = 0 / (len(CALLS) - 1) +", 1)
    with pytest.warns(RunWarning, match="1 trial failed; .*ZeroDivisionError") as caught:
        measure(in_session(f"CALLS = []{first_fails}"))
    assert (caught[0].filename, caught[0].lineno) == (__file__, measure.__code__.co_firstlineno + 2)


def test_a_function_of_a_module_runs_by_its_name() -> None:
    import peekbench_toy

    run = measure(peekbench_toy.constant, executor={"use": "local", "options": {"in_process": True}})
    assert run.spec.methods[0].use == "peekbench_toy:constant"


def test_changed_code_of_a_file_is_a_run_of_its_own(tmp_path: Path) -> None:
    path, executor = tmp_path / "own.py", {"use": "local", "options": {"in_process": True}}
    for code in (FIT, FIT, FIT.replace("+ weight", "* weight + 1")):
        path.write_text(f"import numpy as np\n{code}")
        run = measure(f"{path}:fit", executor=executor)
    assert (run.finished, run.resumed) == (2, 0)
    path.write_text(f"import numpy as np\n{FIT}")
    assert measure(f"{path}:fit", executor=executor).resumed == 2


def test_the_version_is_that_of_the_distribution() -> None:
    assert pb.__version__ == version("peekbench")


@pytest.mark.parametrize("folder", ["site-packages", "libraries"])
def test_the_identity_does_not_depend_on_the_folder_of_a_library(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / folder  # a .pth file can name any folder
    (place / "lookup-1.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(place)
    source = "import library_of_lookup\ndef fit(train, word):\n    return library_of_lookup.look_up(word)\n"
    hashes = []
    for answer in ("near", "away"):
        (place / "library_of_lookup.py").write_text(f"def look_up(word):\n    return {answer!r}\n")
        sys.modules.pop("library_of_lookup", None)
        hashes.append(hash_thing(in_session(source)))
    sys.modules.pop("library_of_lookup", None)
    assert hashes[0] == hashes[1]


ORDERED = """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
import pandas as pd
def fit(unlabeled, train, task, form: str = "numbers"):
    texts = [*train.inputs, *(unlabeled or ())]
    vectorizer = TfidfVectorizer().fit(texts)
    labels = train.labels if form == "numbers" else np.array(task.class_names)[train.labels]
    model = LogisticRegression().fit(vectorizer.transform(train.inputs), labels)
    if form == "frame":
        return lambda texts: pd.DataFrame(model.predict_proba(vectorizer.transform(texts)), columns=model.classes_)
    return make_pipeline(vectorizer, model)
"""


@pytest.mark.slow
def test_classes_of_a_model_may_have_another_order_than_those_of_the_task() -> None:
    words = load_dataset(SourceRef("toy.words"))
    renamed = replace(words, class_names=("z", "a", "m"))
    numbers, *others = (
        pb.measure(in_session(ORDERED), renamed, options={"form": form}, progress=False).arms[["base", "extra", "test"]]
        for form in ("numbers", "names", "frame")
    )
    assert numbers["base"].mean() > 0.5
    for arms in others:
        np.testing.assert_array_equal(arms, numbers)


ADAPTING = """
def fit(unlabeled, train, task):
    def sizes(texts):
        return np.array([sum(map(ord, text)) for text in texts])
    known, is_adapting = sizes(train.inputs), WHEN
    def predict(texts):
        own = sizes(texts)
        scaled = (own - (own if is_adapting else known).mean()) / known.std()
        odds = np.exp(scaled[:, None] * np.arange(task.num_classes))
        return odds / odds.sum(axis=1, keepdims=True)
    return predict
"""


@pytest.mark.parametrize("when", ["True", "unlabeled is not None"])
def test_a_method_that_adapts_in_predict_is_refused_with_advice(when: str) -> None:
    with pytest.raises(
        PluginError,
        match=r"8 of 30 inputs, predicted alone, change by .* Adapt to `unlabeled` in the "
        r".*add the arm alone, .* `arms: .base, extra, test, alone.`",
    ):
        measure(in_session(ADAPTING.replace("WHEN", when)))
    assert measure(in_session(ADAPTING.replace("WHEN", "False"))).failed == 0
