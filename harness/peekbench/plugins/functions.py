"""Makes entries of plain functions and of estimators, so that they need no plugin.

A method takes any of the parameters of `peekbench.plugins.protocols.Method` by name; its other parameters are options:

>>> def fit(unlabeled, train, task, seed, num_components: int = 10):
...     '''LSA and a linear classifier.'''
>>> entry = make_entry(fit, "fit")
>>> entry.options().model_dump(), entry.summary
({'num_components': 10}, 'LSA and a linear classifier')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, get_args, get_type_hints

from pydantic import AfterValidator, create_model
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins.entries import AnalyzerEntry, DataSourceEntry, MethodEntry, MethodTaskKind
from peekbench.plugins.names import find_nearest
from peekbench.plugins.protocols import Options, is_estimator
from peekbench.records.scores import SCORE_NAMES, ScoreName

FunctionEntry: TypeAlias = MethodEntry | DataSourceEntry | AnalyzerEntry
METHOD = ("unlabeled", "train", "task", "context", "seed")
"""Parameters of a method. Without the first two, a function is no method."""


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


def _options(
    function: Callable[..., Any], name: str, hints: Mapping[str, Any], known: tuple[str, ...]
) -> type[Options]:
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
