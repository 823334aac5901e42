"""Audits: what a plugin may say of tasks' data without a run."""

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
from peekbench.errors import ContractError, SpecError
from peekbench.execution.audits import audit, prepare
from peekbench.execution.prefetch import prefetch
from peekbench.plugins import registry
from peekbench.spec.compatibility import changes
from peekbench.spec.components import AuditSpec, make_component
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec
from peekbench.spec.lockfile import lock_path, make_lock, write_lock

MakeSpec = Callable[..., ExperimentSpec]


def test_an_audit_gets_every_task_whole_and_in_its_order(make_spec: MakeSpec) -> None:
    spec = make_spec(audits=["toy.sizes"])
    (found,) = audit(spec)
    assert found.name == "sizes"
    rows = [peekbench.load_dataset(spec.source(task)) for task in spec.tasks]
    expected = [(name, 400, data.inputs[0].split()[0]) for name, data in zip("ab", rows, strict=True)]
    assert list(found.tables[0].rows) == expected


def test_its_seed_follows_from_the_specs_alone(make_spec: MakeSpec) -> None:
    def note(**parts: Any) -> str:
        return audit(make_spec(**parts))[-1].tables[0].note

    renamed = {"use": "toy.sizes", "name": "other"}
    assert note(audits=["toy.sizes"]) == note(audits=["toy.sizes", renamed])
    assert note(audits=["toy.sizes"]) != note(audits=["toy.sizes"], seed=8)


def test_a_spec_without_audits_says_how_to_name_one(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match="has no audits; add some"):
        audit(make_spec())


def test_what_goes_wrong_in_an_audit_names_it(make_spec: MakeSpec) -> None:
    with pytest.raises(RuntimeError, match="no sizes today") as caught:
        audit(make_spec(audits=[{"use": "toy.sizes", "options": {"fail": True}}]))
    assert any("raised by the audit toy.sizes" in note for note in caught.value.__notes__)
    with pytest.raises(ContractError, match=r"toy.speech returned a str; return peekbench.Analysis"):
        audit(make_spec(audits=["toy.speech"]))


def test_audits_need_names_of_their_own(make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match=r"audits\[1\].name: 'toy.sizes' is taken"):
        make_spec(audits=["toy.sizes", "toy.sizes"])
    with pytest.raises(SpecError, match=r"audits\[0\].use: no audit 'toy.vote' \('toy.vote' is among the methods\)"):
        make_spec(audits=["toy.vote"])


def test_a_run_goes_on_whatever_its_spec_audits(make_spec: MakeSpec) -> None:
    assert changes(canonical(make_spec()), canonical(make_spec(audits=["toy.sizes"]))) == []
    before = {name: part for name, part in canonical(make_spec()).items() if name != "audits"}
    assert changes(before, canonical(make_spec(audits=["toy.sizes"]))) == [], "a store made before there were audits"


def test_an_audits_versions_are_locked_and_fetched(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "audited.yaml"
    path.write_text(yaml.safe_dump(make_raw(audits=["toy.sizes"])))
    spec = load_spec(path, locked=False)
    assert "revision 0" in audit(spec)[0].tables[0].note
    write_lock(make_lock(spec.pinnable(), spec.folders()), lock_path(path))
    locked = load_spec(path)
    assert "revision 7" in audit(locked)[0].tables[0].note
    assert prepare(locked) == {"toy.sizes": {"ruler": 7}}
    assert "    ruler 7" in list(prefetch(locked))


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
    assert "ruler 0" in content["provenance"]["for toy.sizes"]


def test_plugins_show_and_list_their_audits() -> None:
    assert make_component(AuditSpec, "toy.sizes").entry.summary == "counts rows"
    listed = CliRunner().invoke(app, ["list", "audits"]).stdout
    assert "toy.sizes" in listed
    assert "toy.vote" not in listed
    assert "toy.sizes: audit" in CliRunner().invoke(app, ["show", "toy.sizes"]).stdout
    assert set(registry.load("toy").offers["audit"]) == {"sizes", "speech"}
