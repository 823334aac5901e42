"""Makes plugins of imported modules, and entries of plain functions and of estimators; checks and indexes entries.

A method takes any of the parameters of `peekbench.plugins.protocols.Method` by name; its other parameters are options:

>>> def fit(unlabeled, train, task, seed, num_components: int = 10):
...     '''LSA and a linear classifier.'''
>>> entry = make_entry(fit, "fit")
>>> entry.options().model_dump(), entry.summary
({'num_components': 10}, 'LSA and a linear classifier')
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_args, get_type_hints

import pluggy
from pydantic import AfterValidator, create_model
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins import entries as hookspecs
from peekbench.plugins.entries import (
    GROUP,
    KINDS,
    AnalyzerEntry,
    DataSourceEntry,
    Entry,
    MethodEntry,
    MethodTaskKind,
    PluginKind,
    kind_of,
)
from peekbench.plugins.local_code import REFERENCE
from peekbench.plugins.names import SESSION, find_nearest, find_reference, is_code, iterate_callables
from peekbench.plugins.protocols import Options, is_estimator
from peekbench.records.scores import SCORE_NAMES, ScoreName

FunctionEntry: TypeAlias = MethodEntry | DataSourceEntry | AnalyzerEntry
METHOD = ("unlabeled", "train", "task", "context", "seed")
"""Parameters of a method. Without the first two, a function is no method."""
DATA_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".txt", ".xlsx")
"""Ends of names under `tasks` that mean files."""
ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
EntryT = TypeVar("EntryT", bound=Entry)


def make_entry(thing: Any, name: str) -> FunctionEntry:
    """Return the entry of a function or of an estimator.

    A function with the parameter `unlabeled` or `train` is a method, one with `results` an analysis, and one that is
    named `load...`, or whose result is annotated as `Dataset`, a data source. An estimator is a method.

    Raises
    ------
    PluginError
        If it is none of them, or has parameters that peekbench cannot pass.
    """
    if is_estimator(thing):
        from peekbench.plugins.estimators import make_estimator_entry  # noqa: PLC0415 - functions need no scikit-learn

        return make_estimator_entry(thing, name)
    if isinstance(thing, type):
        raise PluginError(f"{name} is a class, not a function or an estimator; give an instance, such as {name}()")
    if not inspect.isroutine(thing):
        raise PluginError(f"{name} is a {type(thing).__name__}, not a function or an estimator; name a function")
    parameters = inspect.signature(thing).parameters
    hints = _hints(thing)
    summary = (inspect.getdoc(thing) or f"the function {name}").partition("\n")[0].strip().rstrip(".")
    if {"unlabeled", "train"} & parameters.keys():
        options = _options(thing, name, hints, METHOD)
        return MethodEntry(
            name=name,
            method=_method(thing),
            options=options,
            summary=summary,
            task_kinds=frozenset(get_args(MethodTaskKind)) - {"language_modeling"},
        )
    if "results" in parameters:
        options = _options(thing, name, hints, ("results",))
        return AnalyzerEntry(name=name, analyze=_pass_options(thing), options=options, summary=summary)
    if name.startswith("load") or "Dataset" in str(hints.get("return", "")):
        options = _options(thing, name, hints, ("folders",))
        return DataSourceEntry(name=name, load=_pass_options(thing), options=options, summary=summary)
    raise PluginError(
        f"{name}({', '.join(parameters)}) is no method, data source or analysis; a method has a parameter `unlabeled` "
        "or `train`, an analysis `results`, and the name of a data source begins with `load`"
    )


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # names that exist for type checkers only
        return dict(getattr(function, "__annotations__", {}))


def _options(function: Callable[..., Any], name: str, hints: Mapping[str, Any], known: Sequence[str]) -> type[Options]:
    """Return the model of the options: the annotation of `options`, or one made of the other parameters."""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints.get(parameter.name, inspect.Parameter.empty)
        if parameter.name == "options":
            if isinstance(annotation, type) and issubclass(annotation, Options):
                return annotation
            raise PluginError(f"{name}: annotate `options` with a class derived from peekbench.Options")
        if parameter.name in known:
            continue
        field = _field_of(parameter, annotation)
        if field is None:
            rename = f"its parameters are {', '.join(known)}; rename it"
            if near := find_nearest(parameter.name, known):
                rename = f"rename it to `{near}`"
            raise PluginError(
                f"{name} has the parameter `{parameter}`, which peekbench cannot pass; {rename}, or give it a default "
                "to make it an option"
            )
        fields[parameter.name] = field
    if not fields:
        return Options
    try:
        model = _make_options(name, fields)
        model.model_rebuild()  # finds what is no type of options
    except PydanticUserError as error:
        reason = error.message.partition("\n")[0].partition(". ")[0]
        raise PluginError(
            f"{name}: the parameters {', '.join(fields)} cannot be options, such as numbers and texts: {reason}; "
            "other values can be variables of its module or of a function around it"
        ) from error
    return model


def _field_of(parameter: inspect.Parameter, annotation: Any) -> tuple[Any, Any] | None:
    """Return the annotation and the default of the option that a parameter is; None if it is none."""
    empty, default = parameter.empty, parameter.default
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return None
    if annotation is empty and default is empty:
        return None
    if isinstance(annotation, str) or annotation is empty:
        annotation = Any
        if default not in (empty, None):
            annotation = type(default)
    if default is empty:
        return annotation, ...
    return annotation, default


class FunctionOptions(Options):
    """Options that are parameters of a function. Their class is made again in another process."""

    recipe: ClassVar[tuple[str, Mapping[str, Any]]] = ("", {})
    """Name of the function; annotation and default by parameter."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the class is made of, and the values."""
        return _restore, (*type(self).recipe, dict(self))


def _make_options(name: str, fields: Mapping[str, Any]) -> type[FunctionOptions]:
    model: type[FunctionOptions] = create_model(name, __base__=FunctionOptions, **fields)
    model.recipe = (name, fields)
    return model


def _restore(name: str, fields: Mapping[str, Any], values: Mapping[str, Any]) -> FunctionOptions:
    return _make_options(name, fields)(**values)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    call = _pass_options(function)

    def fit(unlabeled: Any, train: Any, task: Any, *, options: Options, context: Any) -> Any:
        from peekbench.plugins.predictors import as_predictor  # noqa: PLC0415 - reading a spec must not import numpy

        values = {"unlabeled": unlabeled, "train": train, "task": task, "context": context, "seed": context.seed}
        return as_predictor(call(options=options, **values), task, train.labels)

    return fit


def _pass_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that passes each option, and of other keywords those that the function has."""
    parameters = inspect.signature(function).parameters

    def call(*, options: Options, **others: Any) -> Any:
        given = {name: value for name, value in others.items() if name in parameters}
        if "options" in parameters:
            return function(**given, options=options)
        return function(**given, **dict(options))

    return call


def _check_name(name: str) -> str:
    if name not in SCORE_NAMES:
        from peekbench.plugins.scorers import check_scorer  # noqa: PLC0415 - reading a spec must not import scikit-learn

        check_scorer(name)
    return name


ScoreOption: TypeAlias = Annotated[ScoreName | str, AfterValidator(_check_name)]
"""Score in the options of an analysis: a `peekbench.records.ScoreName`, or the name of a score of scikit-learn, which
is computed from the predictions of a run.

Examples
--------
>>> from pydantic import TypeAdapter
>>> TypeAdapter(ScoreOption).validate_python("roc_auc")
'roc_auc'
"""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was imported, with its entries."""

    name: str
    """Name of its entry point."""
    module: str
    """Value of its entry point, such as 'peekbench_classic'."""
    offers: Mapping[str, Mapping[str, Entry]]
    """Entries by kind, such as 'method', and name."""

    def entries(self, entry_type: type[EntryT]) -> dict[str, EntryT]:
        """Return the entries of one type, by name."""
        entries = self.offers[kind_of(entry_type).name]
        return {name: entry for name, entry in entries.items() if isinstance(entry, entry_type)}


def make_plugin(name: str, module: ModuleType, place: str, plugin: str) -> Plugin:
    """Collect the entries that a module registers, and for code without a plugin those of its functions.

    Raises
    ------
    PluginError
        If the module implements an unknown hook, or a hook raises an error or returns wrong entries.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = ", ".join(kind.hook for kind in KINDS)
        raise PluginError(f"{plugin} implements a wrong hook: {error}; the hooks are {hooks}") from error
    offers = {kind.name: _collect(manager, module, kind, f"{plugin}: {kind.hook}") for kind in KINDS}
    if is_code(name):
        for entry_name, entry in _entries_of_functions(module):
            offers[kind_of(type(entry)).name].setdefault(entry_name, entry)
    return Plugin(name, place, MappingProxyType(offers))


def _entries_of_functions(module: ModuleType) -> Iterator[tuple[str, Entry]]:
    """Iterate over the entries of a module's own functions and estimators; other things are left out."""
    has_only_own = module.__name__ == SESSION
    for name, thing in dict(vars(module)).items():
        is_own = has_only_own or getattr(thing, "__module__", "") == module.__name__ or is_estimator(thing)
        if not name.startswith(("_", "peekbench_")) and is_own:
            with suppress(PluginError, ValueError, TypeError):  # `find` reports the error if the name is wanted
                yield name, make_entry(thing, name)


def _collect(manager: pluggy.PluginManager, module: ModuleType, kind: PluginKind, hook: str) -> dict[str, Entry]:
    """Call one hook of a plugin, and return the checked entries by name; `hook` describes it in messages."""
    caller: pluggy.HookCaller = getattr(manager.hook, kind.hook)
    if not caller.get_hookimpls():
        if callable(getattr(module, kind.hook, None)):
            raise PluginError(f"{hook} is not marked; put @hookimpl above it")
        return {}
    try:
        answer = next(iter(caller()), None)  # pluggy leaves out None
    except (Exception, SystemExit) as error:
        raise PluginError(f"{hook} raised {type(error).__name__}: {error}; only return entries in a hook") from error
    expected = " or ".join(entry_type.__name__ for entry_type in kind.entry_types)
    if not isinstance(answer, list):
        raise PluginError(f"{hook} must return a list of {expected}, not {type(answer).__name__}")
    entries: dict[str, Entry] = {}
    for entry in answer:
        if not isinstance(entry, kind.entry_types):
            raise PluginError(f"{hook} must return a list of {expected}, but one item is {entry!r}")
        name: Any = entry.name
        if not (isinstance(name, str) and ENTRY_NAME.fullmatch(name)):
            raise PluginError(f"{hook} returns an entry named {name!r}; use letters, digits, '_' and '-'")
        if name in entries:
            raise PluginError(f"{hook} returns two entries named {name!r}; rename one")
        entries[name] = entry
    for entry in entries.values():
        check_entry(entry, hook)
    return entries


def check_entry(entry: Entry, hook: str) -> None:
    """Check the fields of an entry that a hook returned.

    Raises
    ------
    PluginError
        If a field has a wrong value; the message names the entry, the field and the expected value.
    """
    for problem in _find_errors(entry):
        raise PluginError(f"{hook} returns a wrong entry: {type(entry).__name__} {entry.name!r}: {problem}")


def _find_errors(entry: Entry) -> Iterator[str]:
    for name, function in iterate_callables(entry):
        reference = find_reference(function)
        if reference and not REFERENCE.fullmatch(reference.target):
            yield f"{name} is {reference.target!r}, which is not of the form 'package.module:function'"
        if not callable(function):
            yield f"{name} is {function!r}; give a function, or a reference such as 'package.module:function'"
    options: Any = getattr(entry, "options", Options)
    if not (isinstance(options, type) and issubclass(options, Options)):
        yield f"options is {options!r}; give a class derived from peekbench.Options"
    if isinstance(entry, MethodEntry):
        yield from _find_method_errors(entry)


def _find_method_errors(entry: MethodEntry) -> Iterator[str]:
    task_kinds: Any = entry.task_kinds
    kinds = frozenset(get_args(MethodTaskKind))
    if not (isinstance(task_kinds, frozenset) and task_kinds and task_kinds <= kinds):
        yield f"task_kinds is {task_kinds!r}; give a frozenset of one or more of {sorted(kinds)}"
    names: Any = entry.unlabeled_options
    if not (isinstance(names, frozenset) and names <= entry.options.model_fields.keys()):
        yield f"unlabeled_options is {names!r}; give a frozenset of names of its options"


def options_schema(options: type[Options]) -> dict[str, Any]:
    """Return the JSON schema of a plugin's options.

    Raises
    ------
    PluginError
        If an option has a type that YAML cannot express.
    """
    try:
        return options.model_json_schema()
    except PydanticUserError as error:
        raise PluginError(
            f"options {options.__name__}: {error.message}; give each option a type that YAML can express: text, "
            "numbers, booleans, lists, mappings"
        ) from error
