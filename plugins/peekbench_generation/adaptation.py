"""Training on unlabeled prompts: on the majority's answers, and by a policy gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.errors import ContractError
from peekbench.records import FloatArray
from peekbench_generation.fit import AnsweringModel, fit
from peekbench_generation.options import MajorityVote, PolicyGradient
from peekbench_lm.completions import Completion, make_batch
from peekbench_lm.generation import Answer
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, shuffle_batches

MIN_DEVIATION = 1e-4  # added to the standard deviation of rewards
AGREEING = 0.5  # least grade of a sample that agrees with the majority


def grade_by_majority(samples: Sequence[str], task: Task) -> FloatArray:
    """Return the grades of samples by their majority: the sample with which most of them agree, or the first of these.

    Parameters
    ----------
    samples
        Answers to one prompt.
    task
        Grades an answer by another one. An answer by which nothing can be graded, such as one without a number, agrees
        with none.

    Returns
    -------
    array of shape (len(samples),)
        Grades from 0 to 1; all 0 if no sample agrees with any.
    """
    counts = Counter(samples)
    best = np.zeros(len(samples))
    for candidate in counts:
        try:
            grades = {text: task.grade(text, candidate) for text in counts}
        except ContractError:  # a grader may refuse a reference; that of the scores is checked on the way
            continue
        candidate_grades = np.array([grades[text] for text in samples])
        if candidate_grades.sum() > best.sum():
            best = candidate_grades
    return best


def complete(answer: Answer, weight: float = 1.0) -> Completion:
    """Return a sample as a text to train on."""
    return Completion([*answer.prompt, *answer.ids], len(answer.prompt), weight)


def majority_vote(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: MajorityVote, context: Context
) -> Predictor:
    """Train on the samples that agree with the majority of the samples of their prompt, each different one once.

    Source: Huang et al. (2022), arXiv 2210.11610, section 3, without their rewriting of prompts and answers.

    The parameters and errors are those of `fit.fit`.
    """

    def adapt(answering: AnsweringModel, prompts: Sequence[Sequence[int]]) -> None:
        samples = answering.sample(prompts, options.sampling, seed_for(context.seed, "votes"))
        grades = [grade_by_majority([answer.text for answer in row], task) for row in samples]
        chosen = [
            {tuple(answer.ids): answer for answer, grade in zip(row, row_grades, strict=True) if grade >= AGREEING}
            for row, row_grades in zip(samples, grades, strict=True)
        ]
        completions = [complete(answer) for row in chosen for answer in row.values()]
        answering.metrics["agreement"] = float(np.mean(grades))
        answering.metrics["share_trained"] = len(completions) / sum(map(len, samples))
        answering.train_answers("adaptation", completions, options.adaptation)

    return fit(unlabeled, train, task, options, context, adapt)


def policy_gradient(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: PolicyGradient, context: Context
) -> Predictor:
    """Reinforce samples by their grade by the majority of the samples of their prompt, normalized for each prompt.

    Each step samples answers to some prompts with the current weights and takes one step along the gradient of the
    samples' log probabilities, weighted by their advantages. It has neither clipping, which one step per sample does
    not need, nor a penalty for the distance from the first weights. Samples whose prompt gave equal rewards have no
    advantage (metric `share_without_advantage`); a step without others is left out.

    Source: Zuo et al. (2025), arXiv 2504.16084, section 2, for the rewards; Shao et al. (2024), arXiv 2402.03300,
    section 4.1, for the advantages and the mean over tokens and samples.

    The parameters and errors are those of `fit.fit`.
    """

    def adapt(answering: AnsweringModel, prompts: Sequence[Sequence[int]]) -> None:
        recipe = options.adaptation.make_recipe(options.adaptation.epochs)
        seed = seed_for(context.seed, "policy")
        batches = [rows for epoch in shuffle_batches(len(prompts), recipe, seed) for rows in epoch]
        rewards: list[FloatArray] = []

        def make_steps() -> Iterator[Sequence[Batch]]:
            for step, rows in enumerate(batches):
                samples = answering.sample([prompts[row] for row in rows], options.sampling, seed_for(seed, step))
                answering.model.network.train()
                grades = np.stack([grade_by_majority([answer.text for answer in row], task) for row in samples])
                rewards.append(grades)
                if (batch := make_policy_batch(answering.model, samples, grades)) is not None:
                    yield [batch]

        answering.train_batches(Epochs(make_steps(), len(batches)), recipe)
        means = [float(step.mean()) for step in rewards]
        all_rewards = np.concatenate(rewards)
        answering.metrics |= {
            "agreement": float(all_rewards.mean()),
            "share_without_advantage": float((np.ptp(all_rewards, axis=1) == 0).mean()),
            "first_reward": means[0],
            "last_reward": means[-1],
        }

    return fit(unlabeled, train, task, options, context, adapt)


def make_policy_batch(model: LanguageModel, samples: Sequence[Sequence[Answer]], rewards: FloatArray) -> Batch | None:
    """Return a step along the policy gradient; None if all advantages are 0.

    Parameters
    ----------
    model
        Model that generated the samples.
    samples
        Samples of each prompt.
    rewards
        Reward of each sample; shape (num_prompts, num_samples).
    """
    deviations = rewards.std(1, keepdims=True) + MIN_DEVIATION
    advantages = (rewards - rewards.mean(1, keepdims=True)) / deviations
    completions = [
        complete(answer, float(advantage) / len(answer.ids))
        for row, row_advantages in zip(samples, advantages, strict=True)
        for answer, advantage in zip(row, row_advantages, strict=True)
        if advantage
    ]
    if not completions:
        return None
    return replace(make_batch(model, completions), num_targets=rewards.size)
