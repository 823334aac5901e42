"""RO-Crate 1.1 with the profile Process Run Crate 0.5: a folder that holds a run and describes itself.

`peekbench analyze FOLDER` rebuilds the report from the store in the folder. The formats are
https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/process/0.5.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from peekbench.records import Report
from peekbench.report import write_report
from peekbench_exports.paper_text import REFERENCES_FILE, describe_run, fill_citations, write_text
from peekbench_exports.tables import DESCRIPTIONS, ExportedRun, read_run, write_tables

METADATA, STORE = "ro-crate-metadata.json", "run.sqlite"  # names by which `peekbench analyze` knows a crate
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
SOFTWARE = "https://github.com/peekbench/peekbench"
SPEC = "spec.yaml"
LOCK = "spec.lock"
ACTION, AUTHOR, NO_LICENSE = "#run", "#author", "#no-license"
TYPES = {
    ".sqlite": "application/vnd.sqlite3", ".yaml": "application/yaml", ".lock": "application/yaml",
    ".csv": "text/csv", ".json": "application/json", ".html": "text/html", ".txt": "text/plain",
    ".bib": "application/x-bibtex", ".nc": "application/x-netcdf",
}  # fmt: skip
FILES = {
    STORE: "Store of the run: all trials with their predictions, as `peekbench analyze` reads it",
    SPEC: "Spec of the run with all defaults filled in",
    LOCK: "Lock file: versions of the data and models that the spec names",
    "report.json": "Report for programs: verdicts, tables, figures, spec, data and sessions",
    "report.html": "Report for readers",
    "methods.txt": "Paragraph for the methods section of a paper",
    REFERENCES_FILE: "References that the paragraph cites",
    **DESCRIPTIONS,
}


def write_crate(report: Report, folder: Path) -> None:
    """Write a crate."""
    run = read_run(report)
    assert run.content.copy_store is not None  # it is a run
    run.content.copy_store(folder / STORE)
    (folder / SPEC).write_text(yaml.safe_dump(dict(run.spec), sort_keys=False, allow_unicode=True), encoding="utf-8")
    if run.content.lock is not None:
        shutil.copyfile(run.content.lock, folder / LOCK)
    write_tables(run, folder)
    write_text(run, folder)
    write_report(run.content.report, folder, ("html", "json"))
    content = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": list(_graph(run, folder))}
    (folder / METADATA).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _graph(run: ExportedRun, folder: Path) -> Iterator[dict[str, Any]]:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    inputs = [name for name in names if name in (SPEC, LOCK)]
    author = {"@id": AUTHOR} if run.author else None
    license_id = _license_id(run)
    yield {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "conformsTo": {"@id": PROFILE},
        "identifier": f"urn:peekbench:{run.identifier}",
        "name": f"peekbench run {run.name}",
        "description": run.content.report.headline,
        "datePublished": run.session["started"],
        "license": {"@id": license_id},
        **({"author": author} if author else {}),
        "hasPart": _references(names),
        "mentions": {"@id": ACTION},
    }
    yield {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    yield _license(run, license_id)
    if author:
        yield {"@id": AUTHOR, "@type": "Person", "name": run.author}
    yield {
        "@id": SOFTWARE,
        "@type": "SoftwareApplication",
        "name": "peekbench",
        "description": "Measures whether adapting to the unlabeled test texts inflates a method's score",
        "url": SOFTWARE,
        "softwareVersion": run.session["peekbench"],
    }
    yield {
        "@id": ACTION,
        "@type": "CreateAction",
        "name": f"Run of the spec {run.name}",
        "description": fill_citations(describe_run(run)[0], lambda key: f"[{key}]"),
        "instrument": {"@id": SOFTWARE},
        "object": _references(inputs),
        "result": _references([name for name in names if name not in inputs]),
        "startTime": run.sessions[0]["started"],
        **({"actionStatus": "http://schema.org/CompletedActionStatus"} if run.is_complete else {}),
        **({"agent": author} if author else {}),
    }
    for name in names:
        yield {
            "@id": name,
            "@type": "File",
            "name": name,
            "description": FILES.get(name, "File of an analysis of the report"),
            "contentSize": str((folder / name).stat().st_size),
            "encodingFormat": TYPES.get(Path(name).suffix, "application/octet-stream"),
        }


def _references(names: list[str]) -> list[dict[str, str]] | dict[str, str]:
    """Return references to files; RO-Crate wants a single one without a list."""
    references = [{"@id": name} for name in names]
    return references[0] if len(references) == 1 else references


def _license_id(run: ExportedRun) -> str:
    stated = run.license
    if not stated:
        return NO_LICENSE
    return stated if "://" in stated else f"https://spdx.org/licenses/{stated}"


def _license(run: ExportedRun, identifier: str) -> dict[str, Any]:
    stated = run.license
    description = "License of the results" if stated else "No license was stated; ask the authors before you reuse it"
    return {"@id": identifier, "@type": "CreativeWork", "name": stated or "No license", "description": description}
