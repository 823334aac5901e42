"""Audits, which examine the data of tasks without a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import peekbench
from peekbench.cli.app import app
from peekbench.errors import ContractError, PluginError, SpecError
from peekbench.execution.audits import run_audits
from peekbench.execution.preparation import download_all, prefetch_audits
from peekbench.plugins import registry
from peekbench.spec.compatibility import incompatible_changes
from peekbench.spec.components import AuditSpec, make_component
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec
from peekbench.spec.lockfile import lock_path, make_lock, write_lock

MakeSpec = Callable[..., ExperimentSpec]


def test_an_audit_receives_all_rows_of_every_task_in_order(make_spec: MakeSpec) -> None:
    spec = make_spec(audits=["toy.sizes"])
    (analysis,) = run_audits(spec)
    assert analysis.name == "sizes"
    rows = [peekbench.load_dataset(spec.source(task)) for task in spec.tasks]
    expected = [(name, 400, data.inputs[0].split()[0]) for name, data in zip("ab", rows, strict=True)]
    assert list(analysis.tables[0].rows) == expected


def test_the_seed_of_an_audit_depends_on_the_spec_seed_only(make_spec: MakeSpec) -> None:
    def note(**parts: Any) -> str:
        return run_audits(make_spec(**parts))[-1].tables[0].note

    renamed = {"use": "toy.sizes", "name": "other"}
    assert note(audits=["toy.sizes"]) == note(audits=["toy.sizes", renamed])
    assert note(audits=["toy.sizes"]) != note(audits=["toy.sizes"], seed=8)


def test_the_error_for_a_spec_without_audits_says_how_to_add_one(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match="has no audits; add some"):
        run_audits(make_spec())


def test_errors_of_an_audit_name_it(make_spec: MakeSpec) -> None:
    with pytest.raises(PluginError, match="audit toy.sizes: RuntimeError: no sizes today"):
        run_audits(make_spec(audits=[{"use": "toy.sizes", "options": {"fail": True}}]))
    with pytest.raises(ContractError, match=r"toy.speech returned a str; return peekbench.Analysis"):
        run_audits(make_spec(audits=["toy.speech"]))


def test_names_of_audits_are_unique(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match=r"audits\[1\].name: 'toy.sizes' is taken"):
        make_spec(audits=["toy.sizes", "toy.sizes"])
    with pytest.raises(SpecError, match=r"audits\[0\].use: no audit 'toy.vote'; it is one of the methods"):
        make_spec(audits=["toy.vote"])


def test_audits_may_be_added_to_the_spec_of_a_stored_run(make_spec: MakeSpec) -> None:
    assert incompatible_changes(canonical(make_spec()), canonical(make_spec(audits=["toy.sizes"]))) == []
    before = {name: part for name, part in canonical(make_spec()).items() if name != "audits"}
    assert incompatible_changes(before, canonical(make_spec(audits=["toy.sizes"]))) == [], "of a store without audits"


def test_audit_versions_are_locked_and_prefetched(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "audited.yaml"
    path.write_text(yaml.safe_dump(make_raw(audits=["toy.sizes"])))
    spec = load_spec(path, locked=False)
    assert "revision 0" in run_audits(spec)[0].tables[0].note
    write_lock(make_lock(spec.pinnable(), spec.folders()), lock_path(path))
    locked = load_spec(path)
    assert "revision 7" in run_audits(locked)[0].tables[0].note
    assert prefetch_audits(locked) == {"toy.sizes": {"ruler": 7}}
    assert "    ruler 7" in list(download_all(locked))


def test_the_command_prints_and_writes_a_report(make_raw: Callable[..., dict[str, Any]]) -> None:
    Path("audited.yaml").write_text(yaml.safe_dump(make_raw(audits=["toy.sizes"])))
    done = CliRunner().invoke(app, ["audit", "audited.yaml"])
    assert done.exit_code == 0
    assert "Sizes of tasks" in done.stdout
    folder = Path("reports/small/audits")
    assert {path.name for path in folder.iterdir()} == {f"report.{kind}" for kind in ("html", "txt", "md", "json")}
    content = json.loads((folder / "report.json").read_text())
    assert content["tables"][0]["title"] == "Sizes of tasks"
    assert content["spec"]["audits"][0]["use"] == "toy.sizes"
    assert set(content["data"]) == {"a", "b"}
    assert "ruler 0" in content["provenance"]["used by toy.sizes"]


def test_the_command_line_lists_and_shows_audits() -> None:
    assert make_component(AuditSpec, "toy.sizes").entry.summary == "counts rows"
    listed = CliRunner().invoke(app, ["show", "audits"]).stdout
    assert "toy.sizes" in listed
    assert "toy.vote" not in listed
    assert "toy.sizes: audit" in CliRunner().invoke(app, ["show", "toy.sizes"]).stdout
    assert set(registry.load("toy").offers["audit"]) == {"sizes", "speech"}
