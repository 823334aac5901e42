"""Generated answers: those of transformers, alone and in batches, and the ends of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import save_model
from torch import Tensor
from transformers import AutoConfig

from peekbench_lm import generation
from peekbench_lm.generation import Answer, Decoding, choose_tokens, generate
from peekbench_lm.language_model import LanguageModel

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox", "codegen"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model("gpt2", tmp_path_factory.mktemp("gpt2")), CPU)


def some_prompts(num_shared: int) -> list[list[int]]:
    rng = np.random.default_rng(num_shared)
    return [[*range(1, num_shared + 1), *rng.integers(1, 300, 1 + row % 4 * 3).tolist()] for row in range(6)]


def tokens(answers: Sequence[Sequence[Answer]]) -> list[list[list[int]]]:
    return [[answer.ids for answer in row] for row in answers]


def generate_by_transformers(model: LanguageModel, prompt: Sequence[int], **settings: Any) -> Tensor:
    """Return the tokens after the prompt; shape (num_samples, at most max_new_tokens)."""
    model.network.eval()
    with model.default_attention():
        ids = torch.tensor([list(prompt)])
        out: Tensor = model.network.generate(
            ids, attention_mask=torch.ones_like(ids), use_cache=True, pad_token_id=0, top_k=0, **settings
        )
    return out[:, len(prompt) :]


@pytest.mark.parametrize("num_shared", [0, 5])
def test_the_most_probable_tokens_are_those_of_transformers(num_shared: int, model: LanguageModel) -> None:
    prompts = some_prompts(num_shared)
    answers = generate(model, prompts, Decoding(12), batch_size=4)
    for prompt, (answer,) in zip(prompts, answers, strict=True):
        assert answer.ids == generate_by_transformers(model, prompt, max_new_tokens=12, do_sample=False)[0].tolist()


def test_an_answer_depends_on_its_prompt_only(model: LanguageModel) -> None:
    prompts = some_prompts(5)
    decoding = Decoding(8, temperature=1.0)
    together = generate(model, [*prompts, prompts[2]], decoding, batch_size=7, num_samples=3, seed=4)
    alone = [generate(model, [prompt], decoding, batch_size=32, num_samples=3, seed=4)[0] for prompt in prompts]
    assert tokens(together[:-1]) == tokens(alone)
    assert tokens(together)[-1] == tokens(together)[2], "equal prompts have equal answers"
    assert len({tuple(answer.ids) for answer in together[0]}) == 3, "the answers to a prompt differ"
    assert tokens(alone[:1]) != tokens(generate(model, prompts[:1], decoding, 32, num_samples=3, seed=5))


def test_attention_windows_shorter_than_a_prompt_are_respected(tmp_path: Path) -> None:
    config = AutoConfig.from_pretrained(save_model("mistral", tmp_path))
    config.sliding_window = 12
    config.save_pretrained(tmp_path)
    model = LanguageModel(tmp_path, CPU)
    prompts = [[*range(1, 11), *range(20, 20 + length)] for length in (3, 9, 20, 30)]
    for prompt, (answer,) in zip(prompts, generate(model, prompts, Decoding(10), 4), strict=True):
        assert answer.ids == generate_by_transformers(model, prompt, max_new_tokens=10, do_sample=False)[0].tolist()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_tokens_are_drawn_with_their_probabilities(temperature: float) -> None:
    scores = torch.randn(1, 50, generator=torch.Generator().manual_seed(0)) * 3
    scores[0, 7] = -torch.inf
    num_draws = 20_000
    draws = (torch.arange(num_draws).double() + 0.5) / num_draws
    drawn = choose_tokens(scores.expand(num_draws, -1), temperature, draws)
    shares = drawn.bincount(minlength=50).double() / num_draws
    assert torch.allclose(shares, (scores[0] / temperature).softmax(-1).double(), atol=2 / num_draws)
    assert not (drawn == 7).any()
    extremes = choose_tokens(scores.expand(2, -1), temperature, torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64))
    possible = scores[0] / temperature > (scores[0] / temperature).logsumexp(-1) - math.log(generation.LEVELS)
    assert extremes.tolist() == possible.nonzero()[[0, -1], 0].tolist()


def test_answers_end_at_the_end_of_text_and_at_a_stop_string(
    gpt2: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [gpt2.tokenizer.encode(word) for word in ("spring", "\n", " and")]
    script = [*words[0], *words[1], *words[2], gpt2.tokenizer.eos_token_id, *words[0]]
    step = -1

    def answer(**settings: Any) -> Answer:
        nonlocal step
        step = -1
        ((answer,),) = generate(gpt2, [[5, 6]], Decoding(**settings), 1)
        return answer

    def next_token(scores: Tensor, *_: object) -> Tensor:
        nonlocal step
        step += 1
        return torch.tensor([script[step]]).expand(len(scores))

    monkeypatch.setattr(generation, "choose_tokens", next_token)
    until_end = answer(max_tokens=20)
    assert until_end.ids == script[: -len(words[0])]
    assert until_end.text == "spring\n and"
    until_stop = answer(max_tokens=20, stop=("\n", "ring"))
    assert until_stop.text == "sp"
    until_newline = answer(max_tokens=20, stop=("zebra", "\n"))
    assert until_newline.text == "spring"
    assert until_newline.ids == [*words[0], *words[1]]
    assert answer(max_tokens=len(words[0])).text == "spring"


def test_answers_start_again_if_memory_runs_out(gpt2: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts, decoding = some_prompts(0), Decoding(6, temperature=1.0)
    expected = tokens(generate(gpt2, prompts, decoding, 6))
    compute, calls = gpt2.network.forward, []

    def run_out_of_memory(**inputs: Any) -> Any:
        calls.append(len(inputs["input_ids"]))
        if len(calls) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute(**inputs)

    monkeypatch.setattr(gpt2.network, "forward", run_out_of_memory)
    assert tokens(generate(gpt2, prompts, decoding, 6)) == expected
    assert max(calls[3:]) == 3
