"""Methods, data sources and analyses in files and modules without a distribution."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import peekbench as pb
from peekbench.cli.app import app
from peekbench.execution.provenance import describe_code
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.local_code import load_module
from peekbench.plugins.names import Code, locate_code, split_name
from peekbench.spec.experiment import make_spec as validate

CODE = """
import helper_of_methods
import numpy as np
from peekbench import Analysis, Dataset

SHARE = 0.5

def fit_prior(unlabeled, train, task, seed, smoothing: float = 1.0):
    'Class shares of train.'
    counts = np.bincount(train.labels, minlength=task.num_classes) + smoothing
    return lambda texts: np.tile(counts / counts.sum(), (len(texts), 1))

class Majority:
    def __init__(self, label):
        self.label = label
    def predict(self, texts):
        return np.full(len(texts), self.label)

def fit_majority(train):
    return Majority(np.bincount(train.labels).argmax())

def wrong(train, texts):
    pass

def with_function(train, measure=sorted):
    pass

def load_words(folders, num_rows: int = 200) -> Dataset:
    return Dataset([f"text {row}" for row in range(num_rows)], [row % 2 for row in range(num_rows)], ("a", "b"))

def count(results):
    return Analysis("count", warnings=(f"{len(results)} rows",))
"""
SPEC: dict[str, Any] = {
    "name": "local",
    "tasks": [{"use": "methods.py:load_words", "options": {"num_rows": 100}}],
    "methods": ["methods.py:fit_prior", {"use": "methods.py:fit_majority", "name": "majority"}],
    "design": {"num_train": 10, "num_test": 20, "num_subsamples": 2},
    "analyses": ["methods.py:count"],
    "executor": {"use": "local", "options": {"in_process": True}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "methods.py").write_text(CODE)
    (folder / "helper_of_methods.py").write_text("")
    return folder


def run(spec: dict[str, Any], folder: Path) -> pb.Run:
    return pb.run(validate(spec, folder=folder), progress=False)


def test_a_spec_runs_functions_of_a_file_beside_it(folder: Path) -> None:
    done = run(SPEC, folder)
    assert (done.finished, done.failed) == (4, 0)
    assert [method.name for method in done.spec.methods] == ["fit_prior", "majority"]
    assert done.spec.methods[0].raw_options() == {"smoothing": 1.0}
    assert (done.arms["bias"] == 0).all()
    report = done.report()
    assert "12 rows" in report.warnings
    assert "Class shares of train" in str(report.document.methods)


def test_changed_code_is_noticed_when_a_run_is_resumed(folder: Path) -> None:
    (code,) = describe_code(method.use for method in run(SPEC, folder).spec.methods).values()
    assert set(code) == {"methods.py", "helper_of_methods.py"}
    (folder / "methods.py").write_text(f"{CODE}# edited")
    with pytest.raises(pb.PeekbenchError, match=r"(?s) methods\.py changed.*--allow-changed-code"):
        run({**SPEC, "design": {**SPEC["design"], "num_subsamples": 3}}, folder)


def test_two_specs_can_have_files_of_the_same_name_but_not_modules_beside_them(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    code = CODE.replace("counts / counts.sum()", "np.eye(task.num_classes)[0]")
    (other / "methods.py").write_text(code.replace("helper_of_methods", "other_helper"))
    (other / "other_helper.py").write_text("")
    specs = [validate(SPEC, folder=folder), validate({**SPEC, "name": "second"}, folder=other)]
    first, second = (pb.run(spec, progress=False).predictions.to_pandas(method="fit_prior") for spec in specs)
    assert first["probability"].max() < 1.0
    assert second["probability"].min() == 1.0
    (other / "methods.py").write_text(code)
    with pytest.raises(pb.PeekbenchError, match="no module 'helper_of_methods' in .*other, only .*copy it there"):
        validate(SPEC, folder=other)
    (other / "helper_of_methods.py").write_text("")
    with pytest.raises(pb.PeekbenchError, match="two modules are named 'helper_of_methods': .*rename the first one"):
        validate(SPEC, folder=other)


def test_a_copy_of_a_spec_in_another_folder_with_other_names_of_its_files_is_the_same_experiment(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "methods.py").write_text(CODE.replace("import helper_of_methods", ""))
    store = run(SPEC, folder).store
    moved = shutil.copytree(folder, tmp_path / "moved")
    spelled = {**SPEC, "tasks": [{**SPEC["tasks"][0], "use": f"{moved}/methods.py:load_words"}]}
    spelled["methods"] = ["./methods.py:fit_prior", {"use": ".//methods.py:fit_majority", "name": "majority"}]
    again = pb.run(validate(spelled, folder=moved), store=store, progress=False)
    assert (again.resumed, again.finished) == (4, 0)


def test_a_file_that_was_edited_is_imported_again_but_not_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("SHARE = 0\n")
    loaded = []
    for share in (1, 2):  # the same size and time
        (tmp_path / "mine.py").write_text(f"import own\nSHARE = {share}\n")
        os.utime(tmp_path / "mine.py", (1, 1))
        loaded.append(load_module(Code("mine.py", tmp_path)))
    assert [module.SHARE for module in loaded] == [1, 2]
    (tmp_path / "own.py").write_text("SHARE = 1\n")
    with pytest.raises(pb.PeekbenchError, match=r"own\.py has changed since this process imported it; restart Python"):
        load_module(Code("mine.py", tmp_path))


@pytest.mark.parametrize(
    ("code", "message"),
    [("fit(", r"broken\.py cannot be imported: SyntaxError.*line 1.*correct"), ("import no_such_lib", "No module")],
)
def test_a_file_that_cannot_be_imported_is_refused(code: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(code)
    for _ in range(2):
        with pytest.raises(pb.PeekbenchError, match=message):
            load_module(Code("broken.py", tmp_path))


def test_only_a_name_of_code_that_a_caller_gave_is_imported(folder: Path) -> None:
    name = locate_code("methods.py:fit_prior", folder)
    assert registry.find(pickle.loads(pickle.dumps(name)), MethodEntry).name == "fit_prior"
    with pytest.raises(pb.PeekbenchError, match="only a store names, which is not imported"):
        registry.find(str(name), MethodEntry)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("methods.py:fit_prio", "did you mean methods.py:fit_prior"),
        ("method.py:fit_prior", "no file .*method.py on this machine; did you mean methods.py"),
        ("methods.py", "is a file; name a function in it"),
        ("methods.py:wrong", "parameter `texts`, which peekbench cannot pass; its parameters are unlabeled, train"),
        ("methods.py:with_function", "the parameters measure cannot be options, .* variables of its module"),
        ("methods.py:SHARE", "methods.py:SHARE is a float, not a function"),
        ("my_own", "plugins with methods: .* Otherwise, install .* name a function in a file"),
        ("no_such_package.module:fit", "no module 'no_such_package.module' on this machine"),
    ],
)
def test_errors_name_the_place_and_the_nearest_function(folder: Path, use: Any, message: str) -> None:
    with pytest.raises(pb.PeekbenchError, match=message):
        validate({**SPEC, "methods": [use]}, folder=folder)


def test_a_module_that_python_can_import_needs_no_plugin(make_spec: Callable[..., Any]) -> None:
    assert split_name("peekbench_toy:constant") == ("peekbench_toy:", "constant")
    assert pb.run(make_spec(methods=["peekbench_toy:constant"]), progress=False).finished == 6


def test_options_of_a_function_reach_another_process(folder: Path) -> None:
    options = validate(SPEC, folder=folder).methods[0].options
    assert pickle.loads(pickle.dumps(options)).model_dump() == options.model_dump() == {"smoothing": 1.0}


@pytest.mark.parametrize("use", ["{folder}/evil.py:count", "evil_module:count"])
def test_reading_results_imports_no_code_that_only_a_store_names(
    use: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    use = use.format(folder=folder)
    for name in ("evil.py", "evil_module.py"):
        (folder / name).write_text(CODE)
    store = run({**SPEC, "name": "shared", "analyses": [use]}, folder).store
    for name in ("evil.py", "evil_module.py"):
        (folder / name).write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'executed')!r}).touch()\n{CODE}")
    done = pb.load_run(store)
    assert len(done.arms) == 4
    for command in (["report"], ["report", "--format", "exports.latex"]):
        result = CliRunner().invoke(app, [*command, str(store)])
        assert "is not imported" in f"{result.output} {result.exception}", command
    assert "is a run, not a spec" in str(CliRunner().invoke(app, ["plan", str(store)]))
    assert done.report(["summary"]).verdicts is not None
    assert not (tmp_path / "executed").exists()
    if ".py" in use:  # a module that was edited is not imported again
        assert "12 rows" in done.report([use]).warnings  # the caller names the code
        assert (tmp_path / "executed").exists()


EDITS = """
import os
from pathlib import Path

import helper_of_methods
import numpy as np

def fit(unlabeled, train, task, seed):
    helper = Path(helper_of_methods.__file__)
    if not helper.read_text() and unlabeled is not None:  # edited during the run, just before a crash
        helper.write_text("EDITED = True")
        os.abort()
    return lambda texts: np.full((len(texts), task.num_classes), 1 / task.num_classes)
"""


@pytest.mark.slow
def test_a_worker_that_replaces_a_crashed_one_refuses_edited_code(folder: Path) -> None:
    (folder / "edits.py").write_text(EDITS)
    spec = {
        **SPEC,
        "methods": ["edits.py:fit"],
        "analyses": [],
        "executor": {"use": "local", "options": {"workers": 1}},
    }
    with pytest.raises(pb.PeekbenchError, match=r"changed since the run started.*helper_of_methods\.py changed"):
        run(spec, folder)
