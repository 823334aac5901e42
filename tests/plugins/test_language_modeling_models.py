"""`lm.pretraining` and `lm.dynamic_evaluation`: probabilities of whole texts, and texts scored before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from process_checks import check_in_this_process
from small_models import SENTENCES, save_model
from torch.nn.functional import log_softmax

from peekbench import Context, DataError, Dataset
from peekbench.errors import SpecError
from peekbench.spec.components import MethodSpec, make_component
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import split_for_training, text_log_likelihoods
from peekbench_lm.nano import train_tokenizer
from peekbench_lm.provision import check_requirement
from peekbench_lm.tokenizer import encode_whole
from peekbench_testing import check_entry, make_case
from peekbench_testing.case import Case
from peekbench_text_prediction.trained_model import Replay, Stream, TrainedModel

torch.set_num_threads(1)  # more threads slow down models of this size
QUICK = {"context_length": 32, "precision": "fp32", "pretraining": {"learning_rate": 1e-2}}
STREAM_BATCH = 8
RATE = {"learning_rate": 1e-2, "batch_size": STREAM_BATCH}
TEXTS = Dataset([f"{text} {number}" for number, text in enumerate(SENTENCES)], kind="language_modeling")
WITH_LONG_TEXTS = Dataset(
    [text * 6 if number % 5 == 0 else text for number, text in enumerate(TEXTS.inputs)], kind="language_modeling"
)
ODD = "A <|endoftext|>  naïve\n\n text 🙂 "


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def causal(gpt2: Path) -> LanguageModel:
    return LanguageModel(gpt2, torch.device("cpu"))


def case_of(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(folder), **QUICK, **options})
    return make_case(spec.use, spec.entry, spec.options, tmp_path, TEXTS)


@pytest.mark.slow
def test_contract_of_dynamic_evaluation(gpt2: Path) -> None:
    options = {"model": str(gpt2), **QUICK, "lora": {"rank": 4}, "adaptation": {"decay": 0.1, "batch_size": 30}}
    outcomes = check_entry("lm.dynamic_evaluation", options, data=WITH_LONG_TEXTS)
    assert [outcome for outcome in outcomes if not outcome.passed] == []


@pytest.mark.slow
def test_contract_of_pretraining(gpt2: Path, tmp_path: Path) -> None:
    """Do the checks that need no other process; the checks of dynamic evaluation do the same fit in one."""
    case = case_of("lm.pretraining", gpt2, tmp_path)
    check_in_this_process(case)


# Probabilities of whole texts


@torch.no_grad()
def reference(model: LanguageModel, ids: list[int], num_scored: int) -> float:
    """Sum the log probabilities of the last tokens of one sequence, computed with transformers alone."""
    network = model.network
    implementation = network.config._attn_implementation
    network.set_attn_implementation("eager")
    table = log_softmax(network.eval()(torch.tensor([ids])).logits[0].double(), -1)
    network.set_attn_implementation(implementation)
    return sum(table[position - 1, ids[position]].item() for position in range(len(ids) - num_scored, len(ids)))


@pytest.mark.parametrize("has_start", [True, False])
def test_texts_are_scored_from_their_first_token_to_their_end(causal: LanguageModel, has_start: bool) -> None:
    tokenizer = causal.tokenizer
    end = tokenizer.eos_token_id
    texts = ["The engine repairs an old law.", "", ODD]
    start, tokenizer.bos_token = tokenizer.bos_token, tokenizer.bos_token if has_start else None
    try:
        together = text_log_likelihoods(causal, texts, 64)
        assert split_for_training(causal, texts, 64)[1] == [end, end]
    finally:
        tokenizer.bos_token = start
    for text, value in zip(texts, together, strict=True):
        ids = tokenizer(text, split_special_tokens=True)["input_ids"]
        assert value == pytest.approx(reference(causal, [end, *ids, end], len(ids) + 1), rel=1e-5)


def test_long_texts_are_scored_and_trained_in_windows(causal: LanguageModel) -> None:
    text = " ".join(SENTENCES[:3])
    (ids,) = encode_whole(causal.tokenizer, [text])
    assert 24 < len(ids) < 64
    first = causal.tokenizer.bos_token_id
    expected, done = reference(causal, [first, *ids[:15]], 15), 15
    while done < len(ids):  # windows of 15 tokens after the first one, each with 8 new tokens
        end = min(done + 8, len(ids))
        expected += reference(causal, [first, *ids[end - 15 : end]], end - done)
        done = end
    (value,) = text_log_likelihoods(causal, [text], 16)
    assert value == pytest.approx(expected, rel=1e-5)
    sequences = split_for_training(causal, [text], 16)
    assert {len(sequence) for sequence in sequences[:-1]} == {16}
    assert [token for sequence in sequences for token in sequence[1:]] == ids


def test_the_probabilities_of_all_texts_sum_to_at_most_one(causal: LanguageModel) -> None:
    """A text has one sequence of ids, which no other text continues, and the end-of-text token is only at its end."""
    texts = ["", "a", "a<|endoftext|>", "<|endoftext|>", "a<|endoftext|>b", "a ", " a", "A", "á"]
    sequences = encode_whole(causal.tokenizer, texts)
    end = causal.tokenizer.eos_token_id
    assert all(sequence.index(end) == len(sequence) - 1 for sequence in sequences)
    assert len({tuple(sequence) for sequence in sequences}) == len(texts)
    assert np.exp(text_log_likelihoods(causal, texts, 64)).sum() < 1


def test_models_without_probabilities_of_texts_are_refused(tmp_path: Path) -> None:
    lossy = train_tokenizer("masked", list(SENTENCES), 400)
    with pytest.raises(DataError, match="the tokenizer has no end-of-text token"):
        check_requirement("lossy", "causal", "text probabilities", lossy)
    lossy.eos_token = "[SEP]"
    with pytest.raises(DataError, match=r"turns the text .* into .* every byte"):
        check_requirement("lossy", "causal", "text probabilities", lossy)
    bert = save_model("bert", tmp_path / "bert")
    with pytest.raises(SpecError, match="needs a causal one"):
        case_of("lm.pretraining", bert, tmp_path).fit(None)


# The two methods


def test_both_methods_learn_from_unlabeled_texts_and_share_the_base_arm(
    gpt2: Path, causal: LanguageModel, tmp_path: Path
) -> None:
    base = []
    for use in ("lm.pretraining", "lm.dynamic_evaluation"):
        case = case_of(use, gpt2, tmp_path, **({} if use == "lm.pretraining" else {"adaptation": RATE}))
        base.append(case.predict(None))
        extra = case.fit(case.unlabeled)
        assert case.apply(extra, case.test).mean() > base[-1].mean() + 0.5
        texts = [*case.train.inputs, *(case.unlabeled if use == "lm.pretraining" else ())]
        assert extra.metrics["pretraining_tokens"] == sum(map(len, split_for_training(causal, texts, 32)))
        assert {"pretraining_loss_1", "loading_seconds", "peak_memory_mb"} <= extra.metrics.keys()
    np.testing.assert_array_equal(base[0], base[1])


@pytest.mark.parametrize("batch_size", [1, 4, 7])
def test_no_text_comes_after_itself_or_a_copy(batch_size: int) -> None:
    texts = [*SENTENCES[:20], *SENTENCES[5:9], *SENTENCES[5:7]]
    stream = Stream(texts, batch_size, seed=3)
    assert sorted(text for batch in stream.batches for text in batch) == sorted(texts)
    for text in texts:
        before = [other for batch in stream.batches[: stream.place(text)] for other in batch]
        assert text not in before
        assert text in [other for batch in stream.batches[stream.place(text) :][:1] for other in batch]
    assert {stream.place(text) for text in SENTENCES[20:]} <= set(range(len(stream.batches) + 1))
    assert Stream(texts, batch_size, seed=4).batches != stream.batches, "the order depends on the seed"
    assert Stream(texts[::-1], batch_size, seed=3).batches == stream.batches, "and not on the order of the texts"


def test_each_text_is_scored_by_the_model_of_the_texts_before_it(gpt2: Path, tmp_path: Path) -> None:
    """A stream of only those texts gives the same score, so neither the text nor later ones matter."""
    case = case_of("lm.dynamic_evaluation", gpt2, tmp_path, adaptation={**RATE, "decay": 0.05})
    inputs = [*case.test, case.test[0], case.unlabeled[0]]
    scores = case.fit(case.test).predict(inputs)
    stream = Stream(case.test, STREAM_BATCH, seed=1)
    places = np.array([stream.place(text) for text in inputs])
    assert scores[-2] == scores[0]
    for place in (0, 1, 4):
        before = [text for batch in stream.batches[:place] for text in batch]
        rows = np.flatnonzero(places == place)
        assert len(rows)
        expected = case.fit(before or None).predict([inputs[row] for row in rows])
        np.testing.assert_array_equal(scores[rows], expected)


def test_weights_decay_towards_those_after_the_train_texts(gpt2: Path, tmp_path: Path) -> None:
    """The distance after the stream shrinks with the decay, and predictions do not change the first state."""
    case = case_of("lm.dynamic_evaluation", gpt2, tmp_path)
    options: Any = make_component(MethodSpec, "lm.dynamic_evaluation", {"model": str(gpt2), **QUICK}).options
    distances = []
    for decay in (0.0, 0.3, 0.9):
        trained = TrainedModel(options, Context(1, 1, case.folders))
        start = [weight.detach().clone() for weight in trained.model.network.parameters()]
        adaptation = options.adaptation.model_copy(update={**RATE, "decay": decay})
        replay = Replay(trained, Stream(case.unlabeled, STREAM_BATCH, 1), adaptation, 1)
        stream_end = next(text for text in case.test if replay._stream.place(text) >= len(replay._stream.batches) - 1)
        first = replay.log_likelihoods([stream_end])
        pairs = zip(trained.model.network.parameters(), start, strict=True)
        distances.append(sum(float((weight.detach() - before).norm()) for weight, before in pairs))
        np.testing.assert_array_equal(replay.log_likelihoods([stream_end]), first)
    assert distances[0] > 1.3 * distances[1] > 1.69 * distances[2] > 0
