"""Greedy answers of a model are those that lm-evaluation-harness logged for it."""

from __future__ import annotations

import json
from pathlib import Path

import needs_torch  # noqa: F401
import numpy as np
import pytest

from peekbench.plugins.graders import exact
from peekbench.records.data import Folders, Labeled, SourceRef, Task
from peekbench.records.trials import Context
from peekbench_generation.fit import prompt
from peekbench_generation.options import Answers, Prompting

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/fixtures/logs/lm_eval_generation/test"
MODEL = ROOT.parent / "shared/data/models/stories260K"


@pytest.mark.skipif(not MODEL.exists(), reason="the model of the log is not beside the repository")
def test_answers_and_exact_matches_are_those_of_the_log() -> None:
    lines = map(json.loads, next(LOG.glob("samples_next_word_*.jsonl")).read_text().splitlines())
    logged = [line for line in lines if line["filter"] == "whole"]
    settings = logged[0]["arguments"]["gen_args_0"]["arg_1"]
    answers = Answers(max_tokens=settings["max_gen_toks"], stop=settings["until"])
    options = Prompting(model=str(MODEL), delimiter="", answers=answers, device="cpu")
    train = Labeled(["Tom likes his"], np.array(["dog"], dtype=object))
    task = Task("words", "generation", (), "", SourceRef("files"), exact)
    predictor = prompt(None, train, task, options=options, context=Context(0, 1, Folders(spec=ROOT, cache=ROOT)))
    predicted = list(map(str, predictor.predict([line["doc"]["prompt"] for line in logged])))
    assert predicted == [line["resps"][0][0] for line in logged]
    grades = [float(task.grade(answer, line["target"])) for answer, line in zip(predicted, logged, strict=True)]
    assert grades == [line["exact_match"] for line in logged]
    assert 0 < sum(grades) < len(grades)
