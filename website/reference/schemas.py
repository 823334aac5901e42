"""Pages of the settings of a spec and of the fields of `report.json`, from their JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from peekbench.cli.show import describe_type
from peekbench.plugins.entries import kind_of
from peekbench.report.render.json_report import report_schema
from peekbench.spec.components import COMPONENTS
from peekbench.spec.json_schema import make_schema
from website.reference.markdown import GENERATED, code, page, plain, table
from website.reference.options import UndocumentedError

SPEC_SECTIONS = ("ExperimentSpec", "TaskSpec", "MethodSpec", "Design", "Stop", "AnalysisSpec", "Selection",
                 "ExecutorSpec", "ObserverSpec", "ReportSpec", "AnalysisOnlySpec")  # fmt: skip
"""Definitions of the schema of specs, in the order of the page; those of options are on the pages of their entries."""
ALREADY_DESCRIBED = {"Arm": "arm", "Options": "options"}
"""Definitions that the settings which refer to them describe."""


def write_schemas() -> dict[str, str]:
    """Return the pages of specs and of `report.json`.

    Raises
    ------
    UndocumentedError
        If a setting of a spec has no description, or a definition is on no page.
    """
    return {"spec.md": _spec_page(), "report-json.md": _report_page()}


def _spec_page() -> str:
    definitions = make_schema()["$defs"]
    components = {component.__name__: kind_of(component.entry_type) for component in COMPONENTS}
    unknown = {name for name in definitions if not name.startswith("options of ")}
    unknown -= {*SPEC_SECTIONS, *ALREADY_DESCRIBED}
    if unknown:
        raise UndocumentedError(f"website/reference/schemas.py: no section for {', '.join(sorted(unknown))}")
    names = {name: {"const": f"[{name}](#{name.lower()})"} for name in SPEC_SECTIONS} | {
        name: {"const": word} for name, word in ALREADY_DESCRIBED.items()
    }
    sections: list[str] = []
    for name in SPEC_SECTIONS:
        definition = definitions[name]
        sections.append(f"## {name}")
        if name in components:
            kind = components[name]
            sections.append(
                f"A name, or a mapping with the keys below. [{kind.plural.capitalize()} and their options]"
                f"({kind.heading}.md) lists the names and the options of each."
            )
            definition = next(part for part in definition["anyOf"] if "properties" in part)
            properties = dict(definition["properties"])
            properties["use"] = {"type": "string", "description": f"Name of the {kind.name}."}
            properties["options"] = {"const": "options", "description": f"Options of the {kind.name}."}
            definition = {**definition, "properties": properties}
        else:
            sections.append(plain(definition["description"]))
        sections.append(table(["key", "type", "default", "meaning"], _properties(name, definition, names)))
    return page(
        "Settings of a spec",
        "A spec is a YAML file. An experiment has the keys of [ExperimentSpec](#experimentspec); a spec that only "
        "analyzes existing scores has those of [AnalysisOnlySpec](#analysisonlyspec). The "
        "[guide](../usage/specs.md) has an example. `peekbench show spec-schema` prints the JSON schema for editors.",
        GENERATED,
        *sections,
    )


def _report_page() -> str:
    schema = report_schema()
    definitions = schema.pop("$defs")
    names = {name: {"const": f"[{name}](#{name.lower()})"} for name in definitions}
    sections = [table(["field", "type", "default", "meaning"], _properties("", schema, names))]
    for name, definition in definitions.items():
        sections.append(f"## {name}")
        sections.append(plain(" ".join(definition.get("description", "").partition("\n\n")[0].split())))
        sections.append(table(["field", "type", "default", "meaning"], _properties("", definition, names)))
    return page(
        "Fields of report.json",
        plain(schema["description"]),
        "[report.schema.json](../report.schema.json) is its JSON schema, which `peekbench show report-schema` prints. "
        "[Reports](../report.md) explains the other files of a report.",
        GENERATED,
        *sections,
    )


def _properties(
    owner: str, definition: Mapping[str, Any], names: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, str]]:
    """Iterate over the rows of a table of keys; with an owner, each key must have a description."""
    required = definition.get("required", ())
    for name, schema in definition.get("properties", {}).items():
        meaning = " ".join(schema.get("description", "").split())
        if owner and not meaning:
            raise UndocumentedError(f"{owner}: the setting {name} has no docstring")
        default = "required" if name in required else code(json.dumps(schema["default"])) if "default" in schema else ""
        kind = describe_type(schema, names).replace("_", "\\_")
        yield code(name), kind, default, plain(meaning)
