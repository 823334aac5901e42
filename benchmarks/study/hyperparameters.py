"""The hyperparameters of the study beside those of specs/paper, for docs/reproduction.md.

Values of the study are from arXiv 2410.00179, sections 4, 8 and 9, and from the code published with it. A setting that
differs, or that the study does not state, needs a reason here; otherwise the page cannot be written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from pages import markdown
from pydantic import BaseModel
from reproduction_fits import SPECS

from peekbench.spec.components import MethodSpec
from peekbench.spec.experiment import ExperimentSpec, load_spec
from peekbench_finetune.options import Overtrain, Tapt
from peekbench_lm.options import Lora

METHODS = {
    "BERT": ("few_shot_bert_gpt2.yaml", "tapt-bert"),
    "GPT-2": ("few_shot_bert_gpt2.yaml", "tapt-gpt2"),
    "GPT-2, overtrained": ("overtraining.yaml", "overtrain-gpt2"),
    "Mistral-7B": ("zero_shot_mistral.yaml", "pretrain-mistral"),
    "Mistral-7B, packed": ("zero_shot_mistral_packed.yaml", "packed-mistral"),
}
"""Spec and method of each column of the table."""
GROUPS = {
    "BERT": ("BERT",),
    "GPT-2 (overtrained)": ("GPT-2", "GPT-2, overtrained"),
    "Mistral-7B (packed)": ("Mistral-7B", "Mistral-7B, packed"),
}
"""Columns that share one of the page."""
LONG_TEXTS = (
    "enron_spam",
    "yelp_review_full",
    "blog_authorship_corpus",
    "movie_rationales",
    "craigslist_bargains",
    "frenk_hate_en",
    "yahoo_answers_topics",
)
"""Tasks whose hyperparameters differ from those of the others."""
ONE_SIZE = "one of six sizes"
FEW_SHOT = ("BERT", "GPT-2", "GPT-2, overtrained")
ZERO_SHOT = ("Mistral-7B", "Mistral-7B, packed")


@dataclass(frozen=True)
class Setting:
    """A hyperparameter that the study states."""

    name: str
    """Row of the table; settings with the same name share one."""
    option: str
    """Option of the methods, or field of the design that begins with `design.`."""
    values: Mapping[str, Any]
    """Value of the study for each column: one for all tasks, or one for each name of a task and `""` for the others."""
    reason: str = ""
    """Why a spec has another value."""


def _by_task(usual: Any, **exceptions: Any) -> dict[str, Any]:
    return {"": usual, **exceptions}


def _for_long(value: Any, **exceptions: Any) -> dict[str, Any]:
    return {**dict.fromkeys(LONG_TEXTS, value), **exceptions}


BERT_BATCH = _by_task(16, **_for_long(8, enron_spam=4, yelp_review_full=4, yahoo_answers_topics=16))
GPT2_BATCH = _by_task(16, **_for_long(4, frenk_hate_en=8), app_reviews=8)
BATCHES_OF_8 = _by_task(16, **_for_long(8))
BERT_PREDICTION = _by_task(64, **_for_long(32, yahoo_answers_topics=64))
GPT2_PREDICTION = _by_task(64, **_for_long(32, yahoo_answers_topics=16))


def _columns(names: tuple[str, ...], *values: Any) -> dict[str, Any]:
    return dict(zip(names, values * len(names) if len(values) == 1 else values, strict=True))


SETTINGS = (
    Setting(
        "train texts",
        "design.num_train",
        _columns((*FEW_SHOT, *ZERO_SHOT), *[(50, 100)] * 3, *[(100,)] * 2),
        ONE_SIZE,
    ),
    Setting(
        "test texts",
        "design.num_test",
        _columns((*FEW_SHOT, *ZERO_SHOT), *[(50, 100, 200, 500)] * 3, *[(100,)] * 2),
        ONE_SIZE,
    ),
    Setting(
        "subsamples",
        "design.num_subsamples",
        _columns((*FEW_SHOT, *ZERO_SHOT), *[{50: 100, 100: 100, 200: 50, 500: 20}] * 2, 50, 20, 20),
    ),
    Setting("tokens of a text or prompt", "context_length", _columns((*FEW_SHOT, *ZERO_SHOT), *[256] * 3, *[512] * 2)),
    Setting("pretraining: epochs", "pretraining.epochs", _columns((*FEW_SHOT, *ZERO_SHOT), 2, 1, 2, 1, 1)),
    Setting("texts per step", "pretraining.batch_size", _columns((*FEW_SHOT, "Mistral-7B"), BATCHES_OF_8)),
    Setting("texts, tokens of a sequence", "texts_per_sequence", {"Mistral-7B, packed": 8}),
    Setting("texts, tokens of a sequence", "sequence_length", {"Mistral-7B, packed": 8192}),
    Setting("learning rate", "pretraining.learning_rate", _columns((*FEW_SHOT, *ZERO_SHOT), *[1e-4] * 3, *[2e-4] * 2)),
    Setting("masked tokens", "pretraining.mask_probability", {"BERT": 0.15}),
    Setting("adapters: rank, alpha, dropout", "lora", _columns(ZERO_SHOT, Lora(rank=16, alpha=32, dropout=0.05))),
    Setting("weights, precision", "weights", _columns(ZERO_SHOT, "nf4")),
    Setting("weights, precision", "precision", _columns(ZERO_SHOT, "bf16")),
    Setting("classification: epochs", "classification.epochs", _columns(FEW_SHOT, _by_task(3, **_for_long(1)))),
    Setting("texts per step", "classification.batch_size", _columns(FEW_SHOT, BERT_BATCH, GPT2_BATCH, GPT2_BATCH)),
    Setting("learning rate, schedule, weight decay", "classification.learning_rate", _columns(FEW_SHOT, 5e-5)),
    Setting("learning rate, schedule, weight decay", "classification.schedule", _columns(FEW_SHOT, "linear")),
    Setting("learning rate, schedule, weight decay", "classification.weight_decay", _columns(FEW_SHOT, 0.01)),
    Setting(
        "texts per batch of predictions",
        "classification.prediction_batch_size",
        _columns(FEW_SHOT, BERT_PREDICTION, GPT2_PREDICTION, GPT2_PREDICTION),
    ),
)
ROUNDING = "changes results by rounding at most"
TRAINER = "not stated; the default of the Trainer"
ELSEWHERE = "named in the text of the page"
REASONS = {
    "model": ELSEWHERE,
    "revision": "not stated; the newest commit",
    "device": ROUNDING,
    "threads": ROUNDING,
    "lora": "the study trains all weights of BERT and GPT-2",
    "precision": "not stated for BERT and GPT-2",
    "gradient_checkpointing": "no effect on results",
    "score_texts": "only measures",
    "overtraining_epochs": "twice pretraining.epochs, which the table compares",
    "classification.head": ELSEWHERE,
    "classification.pooling": "of the head",
    "classification.max_gradient_norm": TRAINER,
    "pretraining.discards_pooler": ELSEWHERE,
    "pretraining.mask_probability": "GPT-2 masks nothing",
    "pretraining.schedule": TRAINER,
    "pretraining.weight_decay": TRAINER,
    "pretraining.max_gradient_norm": TRAINER,
    "pretraining.optimizer": "paged 8-bit AdamW on a GPU, as in the study",
    "pretraining.batch_size": "one sequence per step: 13 steps for 100 texts, as in the published code",
    "chat_template": "the model has none",
    "attention": "texts follow each other in a sequence, as in the published code",
    "scoring.normalization": "not stated; see the text of the page",
    "scoring.prior_correction": "not in the study",
    "scoring.batch_size": ROUNDING,
    "scoring.precision": "not stated; see the text of the page",
}
"""Why an option has no value in the table, by option."""


@cache
def _load(name: str) -> ExperimentSpec:
    return load_spec(SPECS / name)


def _find(column: str) -> tuple[ExperimentSpec, MethodSpec]:
    name, method = METHODS[column]
    spec = _load(name)
    return spec, next(candidate for candidate in spec.methods if candidate.name == method)


def value_of(column: str, option: str) -> Any:
    """Return the value of a setting in the spec of a column: one for all tasks, or one for each task's name."""
    spec, method = _find(column)
    if option.startswith("design."):
        return getattr(spec.design, option.removeprefix("design."))
    values = {task.name.removeprefix("hf."): _read(method.options_for(task.name), option) for task in spec.tasks}
    first, *others = values.values()
    if all(other == first for other in others):
        return first
    return values


def _read(options: Any, option: str) -> Any:
    """Return the value of an option; the number of epochs that `null` stands for."""
    if option == "pretraining.epochs" and isinstance(options, Tapt):
        usual = options.pretraining.recipe("masked" if "bert" in options.model else "causal").epochs
        if isinstance(options, Overtrain):
            return options.overtraining_epochs or 2 * usual
        return usual
    value = options
    for name in option.split("."):
        value = getattr(value, name)
    return value


def is_equal(study: Any, here: Any, column: str) -> bool:
    """Return whether a value of the study is that of the spec, for each task."""
    tasks = [task.name.removeprefix("hf.") for task in _find(column)[0].tasks]
    if isinstance(study, dict) and "" in study:
        study = {task: study.get(task, study[""]) for task in tasks}
        here = here if isinstance(here, dict) else dict.fromkeys(tasks, here)
    if isinstance(here, tuple) and not isinstance(study, tuple):
        return here == (study,)
    return bool(study == here)


def list_options(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the names of all options, also of nested ones."""
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            yield from list_options(nested, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def unexplained() -> list[str]:
    """Return what the page must explain and does not: settings that differ, and options without a value or a reason."""
    problems = []
    for setting in SETTINGS:
        for column, study in setting.values.items():
            here = value_of(column, setting.option)
            if not is_equal(study, here, column) and not setting.reason:
                problems.append(f"{column}, {setting.option}: {study} in the study, {here} here")
    for column in METHODS:
        stated = {setting.option for setting in SETTINGS if column in setting.values}
        options = set(list_options(type(_find(column)[1].options)))
        problems += [
            f"{column}, {option}: no value and no reason" for option in sorted(options - stated - REASONS.keys())
        ]
    return problems


def _show(value: Any) -> str:
    """Return a value as a cell: the usual one, and the number of tasks with others."""
    if isinstance(value, Lora):
        return f"{value.rank}, {value.alpha}, {value.dropout:g}"
    if isinstance(value, dict) and all(isinstance(key, int) for key in value):
        return ", ".join(str(number) for number in value.values())
    if isinstance(value, dict):
        (usual, _), *others = Counter(value.values()).most_common()
        return "; ".join([_show(usual), *(f"{_show(other)} for {number}" for other, number in others)])
    if isinstance(value, tuple):
        return ", ".join(map(_show, value))
    if isinstance(value, float) and value < 0.01:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:,}" if isinstance(value, int) else str(value)


def table() -> str:
    """Return the table of the page.

    Raises
    ------
    SystemExit
        If a setting differs from the study, or is missing, without a reason.
    """
    if problems := unexplained():
        raise SystemExit("hyperparameters without an explanation:\n" + "\n".join(problems))
    body = []
    for name, settings in groupby(SETTINGS, lambda setting: setting.name):
        cells = [[_show_columns(setting, columns) for columns in GROUPS.values()] for setting in settings]
        body.append([name, *(", ".join(filter(None, column)) for column in zip(*cells, strict=True))])
    return markdown(["", *GROUPS], body)


def _show_columns(setting: Setting, columns: tuple[str, ...]) -> str:
    """Return the value of one or two columns as a cell, that of the second in parentheses if it differs."""
    texts = []
    for column in columns:
        text = ""
        if column in setting.values:
            here = value_of(column, setting.option)
            text = _show(here)
            if not is_equal(setting.values[column], here, column):
                text += f": {setting.reason}"
        texts.append(text)
    first, *others = texts
    return " ".join([first, *(f"({text})" for text in others if text not in ("", first))]).strip()
