"""Class probabilities from the log probabilities of the class names as answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from peekbench.records import FloatArray
from peekbench_lm.continuations import score_continuations, supports_trees
from peekbench_lm.language_model import LanguageModel
from peekbench_prompting.answers import AnswerTokens
from peekbench_prompting.options import Scoring
from peekbench_prompting.prompts import Prompt, PromptEncoder

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Texts without content (Zhao et al. 2021, arXiv 2102.09690, section 5)."""


class Scorer:
    """Scores the classes of texts with the current weights of a model.

    Parameters
    ----------
    model
        A causal language model.
    scoring
        Normalization, prior correction, batch size and precision.
    """

    def __init__(self, model: LanguageModel, scoring: Scoring) -> None:
        self._model = model
        self._scoring = scoring
        self._num_scored = self._num_by_tree = 0

    @property
    def share_by_tree(self) -> float:
        """Fraction of prompts whose answers were all scored in one forward pass; the others take much longer."""
        return self._num_by_tree / max(1, self._num_scored)

    def probabilities(self, encoder: PromptEncoder, prompts: Sequence[Prompt]) -> FloatArray:
        """Return class probabilities of each prompt.

        Parameters
        ----------
        encoder
            The encoder that made the prompts.
        prompts
            One prompt per text.

        Returns
        -------
        array of shape (len(prompts), num_classes)
        """
        scores = self.scores(encoder, prompts)
        if self._scoring.prior_correction == "content_free":
            prior = softmax(self.scores(encoder, encoder.encode(CONTENT_FREE)), axis=1)
            scores = scores - np.log(prior.mean(axis=0))
        probabilities: FloatArray = softmax(scores, axis=1)
        return probabilities

    def scores(self, encoder: PromptEncoder, prompts: Sequence[Prompt]) -> FloatArray:
        """Return the mean or summed log probability of each class's answer.

        Parameters
        ----------
        encoder
            The encoder that made the prompts.
        prompts
            One prompt per text.

        Returns
        -------
        array of shape (len(prompts), num_classes)
        """
        scores = np.empty((len(prompts), encoder.task.num_classes))
        rows_of: dict[AnswerTokens, list[int]] = {}
        for row, prompt in enumerate(prompts):
            rows_of.setdefault(encoder.answer_tokens(prompt), []).append(row)
        for answers, rows in rows_of.items():
            stems = [prompts[row].ids[: len(prompts[row].ids) - answers.num_replaced] for row in rows]
            self._num_scored += len(rows)
            self._num_by_tree += len(rows) * supports_trees(self._model, stems, answers.tokens)
            batch_size, precision = self._scoring.batch_size, self._scoring.precision
            scores[rows] = score_continuations(self._model, stems, answers.tokens, batch_size, precision)
            if self._scoring.normalization == "mean":
                scores[rows] /= [len(tokens) for tokens in answers.tokens]
        return scores
