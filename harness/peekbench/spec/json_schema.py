"""JSON schema of specs, with the options of all installed plugins, for editors that complete and check YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import models_json_schema

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import OptionsEntry, PluginKind, ReportFormatEntry, TaskGroupEntry, kind_of
from peekbench.plugins.local_code import join_name
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema
from peekbench.records.runs import OWN_FORMATS
from peekbench.spec.analysis_only import EXPERIMENT_KEYS, AnalysisOnlySpec
from peekbench.spec.arms import BLOCK_RULES, NAMED
from peekbench.spec.components import component_types
from peekbench.spec.experiment import ExperimentSpec

KINDS_OF_CODE = ("data source", "method", "analysis")
BLOCKS = {"type": "integer", "minimum": 2}
CODE = r"^[^:]+:[A-Za-z_]\w*$"
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


@dataclass(frozen=True, slots=True)
class _Choice:
    """An entry that a component can name, and the schema of its options."""

    names: tuple[str, ...]
    summary: str
    options: Mapping[str, Any]
    is_group: bool = False


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of specs, those that only analyze scores included; leave out broken plugins."""
    schema = ExperimentSpec.model_json_schema(mode="validation")
    analysis_only = AnalysisOnlySpec.model_json_schema(mode="validation")
    definitions = {**analysis_only.pop("$defs"), **schema.pop("$defs")}
    broken = broken_plugins()
    working = [name for name in registry.installed() if name not in broken]
    for name in ("task", "method", "model"):
        several = {"type": "array", "items": {"type": "string"}}
        properties = definitions["Selection"]["properties"]
        description = properties[name]["description"]
        properties[name] = {"anyOf": [{"type": "string"}, several], "description": description}
    for component in component_types():
        choices = _list_choices(component.entry.kind, working, definitions)
        properties = definitions[component.__name__]["properties"]
        own = {name: part for name, part in properties.items() if name not in ("use", "options")}
        definitions[component.__name__] = {
            "anyOf": [
                {"enum": sorted(name for choice in choices for name in choice.names)},
                *(_with_options(choice, own) for choice in choices),
                *(_of_code(own) if component.entry.kind.name in KINDS_OF_CODE else ()),
            ]
        }
    formats = [*OWN_FORMATS, *_list_names(kind_of(ReportFormatEntry), working)]
    definitions["ReportSpec"]["properties"]["formats"]["items"] = {"enum": formats, "type": "string"}
    definitions.pop("Options", None)
    definitions |= {"Arm": ARM, "ExperimentSpec": schema, "AnalysisOnlySpec": analysis_only}
    for definition in definitions.values():
        if "description" in definition:  # a docstring, whose first paragraph is enough for users of a spec
            definition["description"] = definition["description"].partition("\n\n")[0]
    of_experiments = {"anyOf": [{"required": [key]} for key in EXPERIMENT_KEYS]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peekbench spec",
        "$defs": definitions,
        "if": {"required": ["analyses"], "not": of_experiments},
        "then": {"$ref": "#/$defs/AnalysisOnlySpec"},
        "else": {"$ref": "#/$defs/ExperimentSpec"},
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


def _list_choices(kind: PluginKind, working: Sequence[str], definitions: dict[str, Any]) -> list[_Choice]:
    choices: list[_Choice] = []
    for plugin in working:
        for entry_name, entry in sorted(registry.load(plugin).offers[kind.name].items()):
            names = tuple(dict.fromkeys([f"{plugin}.{entry_name}", join_name(plugin, entry_name)]))
            if isinstance(entry, TaskGroupEntry):
                members = [{"$ref": f"#/$defs/options of {plugin}.{member}"} for member in entry.members]
                choices.append(_Choice(names, entry.summary, {"allOf": members}, is_group=True))
                continue
            assert isinstance(entry, OptionsEntry)  # the rules for components need them
            key = f"options of {plugin}.{entry_name}"
            definitions[key] = _self_contained(entry.options, key, definitions)
            choices.append(_Choice(names, entry.summary, {"$ref": f"#/$defs/{key}"}))
    return choices


def _self_contained(options: type[Options], key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one options model; add the models that it refers to to `definitions`, under `key`."""
    template = "#/$defs/" + key + " {model}"
    _, described = models_json_schema([(options, "validation")], ref_template=template)
    parts = described["$defs"]
    own: dict[str, Any] = parts.pop(options.__name__)
    definitions.update({f"{key} {name}": part for name, part in parts.items()})
    return own


def _of_code(own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of functions in files and modules, whose options are unknown."""
    use = {
        "type": "string",
        "pattern": CODE,
        "description": "A function in a file or module, such as my_file.py:fit or package.module:fit.",
    }
    properties = {"use": use, "options": {"type": ["object", "null"]}, **own}
    return [use, {"type": "object", "additionalProperties": False, "required": ["use"], "properties": properties}]


def _with_options(choice: _Choice, own: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: part for name, part in own.items() if not (choice.is_group and name == "name")}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["use"],
        "properties": {
            "use": {"enum": list(choice.names), "description": choice.summary},
            "options": {"anyOf": [choice.options, {"type": "null"}]},
            **named,
        },
    }
