"""What methods download or build before a run, for all their options."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.errors import DataError, SpecError, StoreError
from peekbench.execution.hosts import check_files, download_all, prefetch_method, prefetch_methods
from peekbench.execution.pilot import run_pilot
from peekbench.execution.runner import run
from peekbench.spec.experiment import ExperimentSpec

MakeSpec = Callable[..., ExperimentSpec]
CALLS = Path("cache/toy-calls")


@pytest.fixture
def make_short(make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSpec:
    """Return a function that makes a spec of tasks whose method reads the file `weights`, or another for some tasks."""
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))
    for name in ("weights", "other"):
        Path(name).write_text(name)

    def make(tasks: str, **by_task: dict[str, Any]) -> ExperimentSpec:
        method = {"use": "toy.short", "by_task": by_task}
        return make_spec(tasks=[{"use": "toy.words", "name": name} for name in tasks], methods=[method])

    return make


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_each_set_of_options_is_prefetched_once(make_short: MakeSpec) -> None:
    spec = make_short("abcd", b={"weights": "other"}, c={"fit": 3}, d={"fit": 3})
    facts = {"toy model": 0, "sha256": {"weights": sha("weights")}}
    files = {"b": "other", "c": "weights", "d": "weights"}
    facts |= {f"{task}: sha256": {"weights": sha(file)} for task, file in files.items()}
    assert prefetch_method(spec, spec.methods[0]) == facts
    assert CALLS.read_text().splitlines() == ["weights 0", "other 0", "weights 3"]
    notes: list[str] = []
    assert prefetch_methods(spec, notes.append) == {"toy.short": facts}
    assert notes == ["preparing toy.short"], "what may take minutes is announced"
    only = make_short("b", b={"weights": "other"})
    assert prefetch_method(only, only.methods[0])["b: sha256"] == {"weights": sha("other")}


def test_models_are_checked_without_a_download(make_spec: MakeSpec, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra 'lm' is not installed")
    (tmp_path / "causal").mkdir()
    (tmp_path / "causal" / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"]}')
    header = b'{"weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    (tmp_path / "causal" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))

    uses: list[tuple[str, dict[str, Any]]] = [
        ("finetune.tapt", {"model": "builtin:minilm"}),
        ("finetune.tapt", {"model": "gpt2"}),
        ("finetune.tapt", {"model": "./causal", "classification": {"head": "bert"}}),
        ("embedding.linear", {"model": "builtin:nosuch"}),
        ("prompting.zero_shot", {"model": "builtin:bert-nano"}),
        ("prompting.zero_shot", {"model": "./causal"}),
        ("transductive.centroids", {"encoder": {"model": "./gone"}}),
    ]
    methods = [{"name": f"m{index}", "use": use, "options": options} for index, (use, options) in enumerate(uses)]
    with pytest.raises(SpecError) as caught:
        check_files(make_spec(methods=methods))
    expected = (
        "method m0: model builtin:minilm: .*no language-model head.*builtin:minilm-mlm",
        "method m2: model ./causal: .*masked",
        "method m3: model builtin:nosuch: no such built-in model; choose one of builtin:bert-nano",
        "method m4: model builtin:bert-nano: .*causal",
        "method m6: model ./gone: there is no folder",
    )
    for line, pattern in zip(str(caught.value).splitlines(), expected, strict=True):
        assert re.match(pattern, line)
    assert len([*tmp_path.rglob("*.safetensors")]) == 1, "nothing is built"


def test_an_error_names_method_and_task(make_short: MakeSpec) -> None:
    spec = make_short("ab", b={"weights": "gone"})
    with pytest.raises(DataError, match=r"method toy\.short, task b: there is no file gone"):
        run(spec)
    with pytest.raises(DataError, match=r"method toy\.short, task b: there is no file gone"):
        list(download_all(spec))


def test_the_pilot_prefetches_before_its_first_trial(make_short: MakeSpec) -> None:
    with pytest.raises(DataError, match="task b"):
        run_pilot(make_short("ab", b={"weights": "gone"}))
    assert list(run_pilot(make_short("ab", b={"fit": 1})).seconds) == [("toy.short", 12, 30)]
    assert CALLS.read_text().splitlines() == ["weights 0", "gone 0", "weights 0", "weights 1"]


def test_a_run_is_not_continued_with_other_files(make_short: MakeSpec, make_spec: MakeSpec) -> None:
    spec = make_short("a")
    assert run(spec).finished == 3
    Path("weights").write_text("changed")
    assert run(spec).finished == 0, "nothing to compute"
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 4}
    tasks = [{"use": "toy.words", "name": "a"}]
    for parts in ({"methods": ["toy.short"], "design": design}, {"methods": ["toy.short", "toy.vote"]}):
        with pytest.raises(StoreError, match=r"small\.sqlite: files of .*\n.*short: weights changed\nRestore"):
            run(make_spec(tasks=tasks, **parts))
    Path("weights").write_text("weights")
    assert run(make_spec(tasks=tasks, methods=["toy.short"], design=design)).finished == 1


def test_files_of_new_tasks_are_no_changes(make_short: MakeSpec) -> None:
    assert run(make_short("ab", b={"weights": "other"})).finished == 6
    grown = make_short("abc", b={"weights": "other"}, c={"weights": "third"})
    Path("third").write_text("third")
    Path("other").write_text("changed")
    with pytest.raises(StoreError, match="method toy.short, task b: weights changed"):
        run(grown)
    Path("other").write_text("other")
    assert run(grown).finished == 3, "the files of a new task are new"
