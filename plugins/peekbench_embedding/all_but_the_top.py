"""All-but-the-top: embeddings without the mean and the strongest components of the unlabeled texts."""

from __future__ import annotations

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_embedding.head import linear_predictor
from peekbench_embedding.moments import estimate_moments
from peekbench_embedding.options import AllButTheTop
from peekbench_encoders.embeddings import Embedder, unit_length


def all_but_the_top(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: AllButTheTop, context: Context
) -> Predictor:
    """Remove the mean and the strongest principal components of the unlabeled texts from embeddings.

    Source: Mu and Viswanath (2018), https://doi.org/10.48550/arXiv.1702.01417, algorithm 1, with sentences instead of
    words. The result is scaled to length 1, since the paper compares embeddings by their cosine.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; in the base arm None, and embeddings stay as in `embedding.linear`.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder, number of components and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metric `removed_variance` except in the base arm.

    Raises
    ------
    DataError
        If all unlabeled texts have equal embeddings.
    SpecError, DataError
        As for `linear`.
    """
    embed = Embedder(options, context.folders)
    if unlabeled is None:
        return linear_predictor(embed, train, options.regularization)
    moments = estimate_moments(embed(unlabeled))
    removed = moments.components[:, : options.num_components]

    def transform(inputs: Inputs) -> FloatArray:
        centered = embed(inputs) - moments.mean
        return unit_length(centered - centered @ removed @ removed.T)

    share = float(moments.variances[: options.num_components].sum() / moments.variances.sum())
    return linear_predictor(transform, train, options.regularization, {"removed_variance": share})
