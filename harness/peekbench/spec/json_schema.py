"""JSON schema of specs, with the options of all installed plugins, for editors that complete and check YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import models_json_schema

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import OptionsEntry, PluginKind, ReportFormatEntry, TaskGroupEntry, kind_of
from peekbench.plugins.names import join_name
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema
from peekbench.records.runs import OWN_FORMATS
from peekbench.spec.arms import BLOCK_RULES, NAMED
from peekbench.spec.components import COMPONENTS
from peekbench.spec.experiment import ExperimentSpec

KINDS_OF_CODE = ("data source", "method", "analysis")
BLOCKS = {"type": "integer", "minimum": 2}
OF_CODE = {
    "type": "string",
    "pattern": r"^[^:]+:[A-Za-z_]\w*$",
    "description": "A function in a file or module, such as my_file.py:fit or package.module:fit.",
}
"""A function in a file or module, whose options are unknown."""
ARM = {
    "anyOf": [
        {"enum": [*NAMED]},
        {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {
                "mix": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "exclusiveMaximum": 1,
                    "description": "Share of the extra texts that test texts replace.",
                },
                **{kind: {"description": rule.summary, **BLOCKS} for kind, rule in BLOCK_RULES.items()},
            },
        },
    ]
}


def make_schema() -> dict[str, Any]:
    """Make the JSON Schema 2020-12 of specs; leave out broken plugins."""
    schema = ExperimentSpec.model_json_schema(mode="validation")
    definitions = schema.pop("$defs")
    broken = broken_plugins()
    working = [name for name in registry.installed() if name not in broken]
    for component in COMPONENTS:
        properties = definitions[component.__name__]["properties"]
        own = {name: part for name, part in properties.items() if name not in ("use", "options")}
        kind = kind_of(component.entry_type)
        names, forms = _describe_entries(kind, working, own, definitions)
        if kind.name in KINDS_OF_CODE:
            forms += [OF_CODE, _describe_form(OF_CODE, {"type": ["object", "null"]}, own)]
        definitions[component.__name__] = {"anyOf": [{"enum": sorted(names)}, *forms]}
    formats = [*OWN_FORMATS, *_list_names(kind_of(ReportFormatEntry), working)]
    definitions["ReportSpec"]["properties"]["formats"]["items"] = {"enum": formats, "type": "string"}
    definitions.pop("Options", None)
    definitions |= {"Arm": ARM, "ExperimentSpec": schema}
    for definition in definitions.values():
        if "description" in definition:  # a docstring, whose first paragraph is enough for users of a spec
            definition["description"] = definition["description"].partition("\n\n")[0]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peekbench spec",
        "$defs": definitions,
        "$ref": "#/$defs/ExperimentSpec",
    }


def broken_plugins() -> dict[str, str]:
    """Return, by plugin, why each broken plugin cannot be loaded."""
    broken: dict[str, str] = {}
    for plugin in registry.installed():
        try:
            for entries in registry.load(plugin).offers.values():
                for entry in entries.values():
                    if isinstance(entry, OptionsEntry):
                        options_schema(entry.options)
        except PluginError as error:
            broken[plugin] = str(error)
    return broken


def _list_names(kind: PluginKind, working: Sequence[str]) -> list[str]:
    names = ((plugin, name) for plugin in working for name in sorted(registry.load(plugin).offers[kind.name]))
    return [join_name(plugin, name) for plugin, name in names]


def _describe_entries(
    kind: PluginKind, working: Sequence[str], own: Mapping[str, Any], definitions: dict[str, Any]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of all entries of a kind, and the schema of a component with each; add their options."""
    names: list[str] = []
    forms: list[dict[str, Any]] = []
    for plugin in working:
        for entry_name, entry in sorted(registry.load(plugin).offers[kind.name].items()):
            key = f"options of {plugin}.{entry_name}"
            options: dict[str, Any] = {"$ref": f"#/$defs/{key}"}
            properties = dict(own)
            if isinstance(entry, TaskGroupEntry):
                options = {"allOf": [{"$ref": f"#/$defs/options of {plugin}.{member}"} for member in entry.members]}
                del properties["name"]  # its members have their own
            elif isinstance(entry, OptionsEntry):
                definitions[key] = _self_contained(entry.options, key, definitions)
            uses = list(dict.fromkeys([f"{plugin}.{entry_name}", join_name(plugin, entry_name)]))
            names += uses
            use = {"enum": uses, "description": entry.summary}
            forms.append(_describe_form(use, {"anyOf": [options, {"type": "null"}]}, properties))
    return names, forms


def _describe_form(use: Mapping[str, Any], options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"use": use, "options": options, **own}
    return {"type": "object", "additionalProperties": False, "required": ["use"], "properties": properties}


def _self_contained(options: type[Options], key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one options model; add the models that it refers to to `definitions`, under `key`."""
    template = "#/$defs/" + key + " {model}"
    _, described = models_json_schema([(options, "validation")], ref_template=template)
    parts = described["$defs"]
    own: dict[str, Any] = parts.pop(options.__name__)
    definitions.update({f"{key} {name}": part for name, part in parts.items()})
    return own
