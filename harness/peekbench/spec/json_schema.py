"""JSON schema of specs, the options of every installed plugin included, for editors that complete and check YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import models_json_schema

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry, TaskGroupEntry
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema
from peekbench.spec.analysis_only import OF_EXPERIMENTS, AnalysisOnlySpec
from peekbench.spec.experiment import ExperimentSpec

_PLACES = {
    "TaskSpec": "data source",
    "MethodSpec": "method",
    "AnalysisSpec": "analysis",
    "AuditSpec": "audit",
    "ExecutorSpec": "executor",
}


def make_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of specs, those of analyses alone too, without the plugins that are broken."""
    schema = ExperimentSpec.model_json_schema(mode="validation")
    other = AnalysisOnlySpec.model_json_schema(mode="validation")
    definitions = {**other.pop("$defs"), **schema.pop("$defs")}
    broken = broken_plugins()
    sound = [plugin for plugin in registry.installed() if plugin not in broken]
    sizes = [("Design", "num_train"), ("Design", "num_test"), ("TaskSpec", "num_test")]
    for model, size in [*sizes, ("Selection", "num_train"), ("Selection", "num_test")]:
        parts = definitions[model]["properties"]
        parts[size] = _one_or_several(parts[size])
    for name in ("task", "method", "model"):
        several = {"type": "array", "items": {"type": "string"}}
        definitions["Selection"]["properties"][name] = {"anyOf": [{"type": "string"}, several]}
    uses = {kind: _uses(kind, sound, definitions) for kind in _PLACES.values()}
    for model, kind in _PLACES.items():
        own = {name: part for name, part in definitions[model]["properties"].items() if name not in ("use", "options")}
        definitions[model] = {
            "anyOf": [
                {"enum": sorted(name for use in uses[kind] for name in use.names)},
                *(_with_options(use, own) for use in uses[kind]),
            ]
        }
    definitions.pop("Options", None)
    definitions["Arm"] = {
        "anyOf": [
            {"enum": ["base", "extra", "test"]},
            {
                "type": "object",
                "additionalProperties": False,
                "required": ["mix"],
                "properties": {"mix": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
                "description": "Share of test texts among the unlabeled ones.",
            },
        ]
    }
    definitions |= {"ExperimentSpec": schema, "AnalysisOnlySpec": other}
    of_experiments = {"anyOf": [{"required": [key]} for key in OF_EXPERIMENTS]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peekbench spec",
        "$defs": definitions,
        "if": {"required": ["analyses"], "not": of_experiments},
        "then": {"$ref": "#/$defs/AnalysisOnlySpec"},
        "else": {"$ref": "#/$defs/ExperimentSpec"},
    }


def _one_or_several(part: Mapping[str, Any]) -> dict[str, Any]:
    one = {"type": "integer", "minimum": 1}
    return {
        "anyOf": [one, {"type": "array", "items": one, "minItems": 1}],
        **({"description": part["description"]} if "description" in part else {}),
    }


def broken_plugins() -> dict[str, str]:
    """What is wrong with each plugin that cannot be loaded."""
    broken: dict[str, str] = {}
    for plugin in registry.installed():
        try:
            for entries in registry.load(plugin).offers.values():
                for entry in entries.values():
                    if not isinstance(entry, TaskGroupEntry | RendererEntry):
                        options_schema(entry.options)
        except PluginError as error:
            broken[plugin] = str(error)
    return broken


class _Use:
    """A thing that a spec can name, under each of its names, and the schema of its options."""

    def __init__(
        self, names: tuple[str, ...], summary: str, options: Mapping[str, Any], *, is_group: bool = False
    ) -> None:
        self.names, self.summary, self.options, self.is_group = names, summary, options, is_group


def _uses(kind: str, sound: Sequence[str], definitions: dict[str, Any]) -> list[_Use]:
    found: list[_Use] = []
    for plugin in sound:
        for thing, entry in sorted(registry.load(plugin).offers.get(kind, {}).items()):
            names = (f"{plugin}.{thing}", plugin) if thing == plugin else (f"{plugin}.{thing}",)
            if isinstance(entry, TaskGroupEntry):
                members = [{"$ref": f"#/$defs/options of {plugin}.{member}"} for member in entry.members]
                found.append(_Use(names, entry.summary, {"allOf": members}, is_group=True))
                continue
            assert not isinstance(entry, RendererEntry)  # for which specs have no place
            key = f"options of {plugin}.{thing}"
            definitions[key] = _self_contained(entry.options, key, definitions)
            found.append(_Use(names, entry.summary, {"$ref": f"#/$defs/{key}"}))
    return found


def _self_contained(options: type[Options], key: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Schema of one options model; what it refers to is filed beside it under names of its own."""
    template = "#/$defs/" + key + " {model}"
    _, described = models_json_schema([(options, "validation")], ref_template=template)
    parts = described["$defs"]
    own: dict[str, Any] = parts.pop(options.__name__)
    definitions.update({f"{key} {name}": part for name, part in parts.items()})
    return own


def _with_options(use: _Use, own: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: part for name, part in own.items() if not (use.is_group and name == "name")}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["use"],
        "properties": {
            "use": {"enum": list(use.names), "description": use.summary},
            "options": {"anyOf": [use.options, {"type": "null"}]},
            **named,
        },
    }
