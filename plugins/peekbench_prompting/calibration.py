"""Batch calibration: class priors are the mean class probabilities of the unlabeled texts."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_prompting.fit import fit_untrained
from peekbench_prompting.options import BatchCalibration, BatchCalibrationFewShot


def batch_calibration(
    unlabeled: Inputs | None,
    train: Labeled,
    task: Task,
    *,
    options: BatchCalibration | BatchCalibrationFewShot,
    context: Context,
) -> Predictor:
    """Prompt the model, and divide by the mean class probabilities of the unlabeled texts.

    `batch_calibration_few_shot` uses this function too, with the options `BatchCalibrationFewShot`. Without unlabeled
    texts, nothing is calibrated. The other parameters and the errors are those of `prompt`.

    Source: Zhou et al. (2024), arXiv 2309.17249, section 4, equations 1 and 2, with all unlabeled texts as the batch.
    """
    metrics: dict[str, float] = {}
    predictor = fit_untrained(train, task, options, context, metrics)
    if unlabeled is None:
        return predictor
    prior = np.mean(predictor.predict(unlabeled), axis=0)
    metrics |= {"smallest_prior": float(prior.min()), "largest_prior": float(prior.max())}
    return Predictor(lambda inputs: calibrate(np.asarray(predictor.predict(inputs)), prior, options.strength), metrics)


def calibrate(probabilities: FloatArray, prior: FloatArray, strength: float) -> FloatArray:
    """Divide probabilities by a power of the class priors, and normalize rows.

    Source: Zhou et al. (2024), arXiv 2309.17249, section 4. The prior is that of equation 1. Equation 2 subtracts it
    from the scores of the classes; here, probabilities are divided by it, which the paper calls equivalent to a
    subtraction of logits. `strength` is the gamma of their adjustable layer: their unsupervised method is gamma 1, and
    they choose other values with labels.

    Parameters
    ----------
    probabilities
        Class probabilities; shape `(n, num_classes)`.
    prior
        Mean class probabilities; shape `(num_classes,)`.
    strength
        Power of the priors.

    Returns
    -------
    array of shape `(n, num_classes)`

    Examples
    --------
    >>> calibrate(np.array([[0.6, 0.4]]), np.array([0.75, 0.25]), 1.0).round(3).tolist()
    [[0.333, 0.667]]
    """
    smallest = np.finfo(np.float64).tiny  # a probability can be rounded to 0, which has no logarithm
    scores = np.log(np.maximum(probabilities, smallest)) - strength * np.log(np.maximum(prior, smallest))
    calibrated: FloatArray = softmax(scores, axis=1)
    return calibrated
