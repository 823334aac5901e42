"""Croissant 1.0: the tables of a run as a data set that other tools can load.

The format is http://mlcommons.org/croissant/1.0.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from peekbench.records import Report
from peekbench_exports.paper_text import describe_run, fill_citations
from peekbench_exports.tables import DESCRIPTIONS, FileColumn, list_columns, make_tables, read_run, write_tables

METADATA = "croissant.json"
CONTEXT = Path(__file__).parent / "croissant_context.json"  # that the specification gives
VERSION = "1.0.0"
TYPES = {"text": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}
CITATION = (
    "Kush Dubey. Evaluating the fairness of task-adaptive pretraining on unlabeled test data before few-shot text "
    "classification. GenBench 2024. https://arxiv.org/abs/2410.00179"
)


def write_croissant(report: Report, folder: Path) -> None:
    """Write the CSV files of a run and their description."""
    run = read_run(report)
    write_tables(run, folder)
    columns = list(list_columns(make_tables(run)))
    content = {
        "@context": json.loads(CONTEXT.read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": run.name,
        "description": fill_citations("\n\n".join(describe_run(run)), lambda key: f"[{key}]"),
        "version": VERSION,
        "datePublished": run.session["started"],
        "url": f"urn:peekbench:{run.identifier}",
        "citeAs": CITATION,
        **({"license": run.license} if run.license else {}),
        **({"creator": {"@type": "sc:Person", "name": run.author}} if run.author else {}),
        "distribution": [_file(folder / name) for name in DESCRIPTIONS],
        "recordSet": [
            _record_set(name, [column for column in columns if column.file == name]) for name in DESCRIPTIONS
        ],
    }
    (folder / METADATA).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _file(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "description": DESCRIPTIONS[path.name],
        "contentUrl": path.name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": "text/csv",
        "sha256": sha256(content).hexdigest(),
    }


def _record_set(file: str, columns: list[FileColumn]) -> dict[str, Any]:
    name = Path(file).stem
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": DESCRIPTIONS[file],
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name.replace(' ', '_')}",  # the format allows no spaces in identifiers
                "name": column.name,
                "description": column.meaning,
                "dataType": TYPES[column.type],
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for column in columns
        ],
    }
