"""Class probabilities from the probabilities of the classes' names as answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from peekbench.records import FloatArray
from peekbench_lm.continuations import computes_trees, score_continuations
from peekbench_prompting.answers import Answers
from peekbench_prompting.prompts import Prompt, Prompts

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel
    from peekbench_prompting.options import Scoring

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Texts that say nothing, as in Zhao et al. 2021 (arXiv 2102.09690), section 5."""


class Scorer:
    """Tells the classes of texts by a model as it is now."""

    def __init__(self, model: LanguageModel, scoring: Scoring) -> None:
        self._model = model
        self._scoring = scoring
        self._num_scored = self._num_by_tree = 0

    @property
    def share_by_tree(self) -> float:
        """Which share of the prompts so far had their answers computed at once; the others take far longer."""
        return self._num_by_tree / max(1, self._num_scored)

    def probabilities(self, prompts: Prompts, asked: Sequence[Prompt]) -> FloatArray:
        """Class probabilities of each prompt; (len(asked), num_classes)."""
        scores = self.scores(prompts, asked)
        if self._scoring.prior_correction == "content_free":
            free = softmax(self.scores(prompts, prompts.prompts(CONTENT_FREE)))
            scores = scores - np.log(free.mean(axis=0))
        return softmax(scores)

    def scores(self, prompts: Prompts, asked: Sequence[Prompt]) -> FloatArray:
        """Mean or summed log-probability of each class's answer; (len(asked), num_classes)."""
        scores = np.empty((len(asked), prompts.task.num_classes))
        rows_of: dict[Answers, list[int]] = {}
        for row, prompt in enumerate(asked):
            rows_of.setdefault(prompts.answers(prompt), []).append(row)
        for answers, rows in rows_of.items():
            stems = [asked[row].ids[: len(asked[row].ids) - answers.num_replaced] for row in rows]
            self._num_scored += len(rows)
            self._num_by_tree += len(rows) * computes_trees(self._model, stems, answers.tokens)
            batch_size, precision = self._scoring.batch_size, self._scoring.precision
            scores[rows] = score_continuations(self._model, stems, answers.tokens, batch_size, precision)
            if self._scoring.normalization == "mean":
                scores[rows] /= [len(tokens) for tokens in answers.tokens]
        return scores


def softmax(scores: FloatArray) -> FloatArray:
    """Rows that add up to 1, in proportion to the scores' exponentials; (n, num_classes)."""
    odds: FloatArray = np.exp(scores - scores.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    return odds
