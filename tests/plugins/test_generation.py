"""Plugin `generation`: prompts, votes, and three methods compared with a plain implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import save_model
from torch.nn.functional import cross_entropy

from peekbench import Context, DataError, Folders, Labeled, Predictor, Task
from peekbench.errors import SpecError
from peekbench.plugins.graders import exact, number
from peekbench.records import SourceRef
from peekbench_generation import adaptation, fit, options
from peekbench_generation.adaptation import grade_by_majority
from peekbench_generation.prompts import PromptEncoder
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.seeds import seed_for
from peekbench_lm.tokenizer import load_tokenizer

torch.set_num_threads(1)  # more threads slow down models of this size
PROMPTS = [f"{who} {does}" for who in ("The engine", "A rabbit", "The minister") for does in ("follows", "plays")]
TRAIN = Labeled(PROMPTS[:4], np.array(["the pump", "an old law", "a field", "the vote"], dtype=object))


def same_length(answer: str, reference: str) -> bool:
    """Random models rarely repeat an answer, but often its length modulo 3."""
    return len(answer) % 3 == len(reference) % 3


def make_task(grader: Callable[[str, str], float] = same_length, instruction: str = "") -> Task:
    return Task("sums", "generation", (), instruction, SourceRef("files"), grader)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"), dropout=0.0)


@pytest.fixture
def run_method(folder: Path) -> Callable[..., Predictor]:
    def run_method(name: str, unlabeled: Sequence[str] | None = PROMPTS, **settings: Any) -> Predictor:
        methods: dict[str, tuple[Any, Any]] = {
            "prompt": (fit.prompt, options.Prompting),
            "supervised": (fit.supervised, options.Supervised),
            "majority_vote": (adaptation.majority_vote, options.MajorityVote),
            "policy_gradient": (adaptation.policy_gradient, options.PolicyGradient),
        }
        method, options_class = methods[name]
        task = make_task(settings.pop("grader", same_length))
        settings = {"answers": {"max_tokens": 5}, **settings}
        if name != "prompt":
            settings = {"precision": "fp32", **settings}
        parsed = options_class(model=str(folder), context_length=64, device="cpu", **settings)
        context = Context(3, 1, Folders(spec=folder, cache=folder))
        predictor: Predictor = method(unlabeled, TRAIN, task, options=parsed, context=context)
        return predictor

    return run_method


ADAPTED = ("majority_vote", "policy_gradient")
FAST = {"adaptation": {"learning_rate": 0.01, "batch_size": 3}}


def test_the_majority_is_the_sample_with_which_most_agree() -> None:
    task = make_task(number)
    assert grade_by_majority(["It is 4.", "5", "4", "no idea", "4.0"], task).tolist() == [1, 0, 1, 0, 1]
    assert grade_by_majority(["7", "5"], task).tolist() == [1, 0], "the first of equally frequent answers"
    assert grade_by_majority(["none", "no idea"], task).tolist() == [0, 0], "nothing can be graded by these"
    partial = make_task(lambda answer, reference: 0.5 if answer[0] == reference[0] else 0.0)
    assert grade_by_majority(["ab", "cd", "ae"], partial).tolist() == [0.5, 0, 0.5]


def test_prompts_have_instruction_examples_and_delimiter(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    task = make_task(exact, "Continue the sentence.")
    encoder = PromptEncoder(tokenizer, task, options.Prompting(model="./x"), 128, [("A rabbit", "plays")])
    (ids,) = encoder.encode(["The engine"])
    assert tokenizer.decode(ids) == "Continue the sentence.\n\nA rabbit plays\n\nThe engine"
    completion = encoder.complete("The engine", "follows")
    assert tokenizer.decode(completion.ids[: completion.start]).endswith("The engine")
    assert tokenizer.decode(completion.ids[completion.start :]) == f" follows{tokenizer.eos_token}"


def test_chat_messages_hold_the_prompt_and_its_examples(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}{% if add_generation_prompt %}>{% endif %}"
    )
    settings = options.Prompting(model="./x")
    encoder = PromptEncoder(tokenizer, make_task(exact, "Go on."), settings, 128, [("A rabbit", "plays")])
    (ids,) = encoder.encode(["The engine"])
    assert tokenizer.decode(ids) == "[user: Go on.\n\nA rabbit][assistant: plays][user: Go on.\n\nThe engine]>"
    for limit in (15, 17):
        short = options.Prompting(model="./x", answers={"max_tokens": 5})
        (cut,) = PromptEncoder(tokenizer, make_task(), short, limit, []).encode(["The engine follows the long melody"])
        assert len(cut) == limit - 5
        assert tokenizer.decode(cut).startswith("[user:") and tokenizer.decode(cut).endswith("]>")
    with pytest.raises(SpecError, match="leaves no room for a prompt in a context of 9"):
        PromptEncoder(tokenizer, make_task(), short, 9)
    tokenizer.chat_template = "{{ raise_exception('no') }}"
    with pytest.raises(DataError, match="chat template fails.*chat_template: never"):
        encoder.encode(["The engine"])


def test_long_prompts_lose_their_beginning(folder: Path, run_method: Callable[..., Predictor]) -> None:
    predictor = run_method("prompt")
    answers = predictor.predict(["A rabbit plays " * 40, "The engine"])
    assert predictor.metrics["share_cut"] == 0.5
    adapted = run_method("majority_vote", ["A rabbit plays " * 40, "The engine", "The vote"], finetuning={})
    assert adapted.metrics["adaptation_share_cut"] == pytest.approx(1 / 3)
    assert adapted.metrics["finetuning_share_cut"] == 0
    assert answers[1:] == predictor.predict(["The engine"])
    tokenizer = load_tokenizer(folder)
    encoder = PromptEncoder(tokenizer, make_task(), options.Prompting(model="./x", answers={"max_tokens": 3}), 8)
    (ids,) = encoder.encode(["The engine follows the long melody"])
    assert ids == tokenizer.encode("The engine follows the long melody")[-5:]
    completion = encoder.complete("The engine follows the long melody", "in spring")
    assert len(completion.ids) == 8
    assert tokenizer.decode(completion.ids[completion.start :]) == f" in spring{tokenizer.eos_token}"
    with pytest.raises(DataError, match="a reference has .* tokens, but the context has 8"):
        encoder.complete("The engine", "follows " * 20)


def test_impossible_sizes_are_refused(run_method: Callable[..., Predictor]) -> None:
    with pytest.raises(SpecError, match=r"answers.max_tokens: 64 leaves no room for a prompt in a context of 64"):
        run_method("prompt", answers={"max_tokens": 64})
    with pytest.raises(DataError, match="num_examples is 5, but there are 4 train prompts"):
        run_method("prompt", num_examples=5)


@pytest.mark.parametrize("name", ADAPTED)
def test_without_unlabeled_prompts_every_method_answers_as_the_model(
    name: str, run_method: Callable[..., Predictor]
) -> None:
    expected = run_method("prompt").predict(PROMPTS)
    assert run_method(name, None, **FAST).predict(PROMPTS) == expected
    finetuning = {"finetuning": {"epochs": 3, "learning_rate": 0.01}}
    supervised = run_method("supervised", **finetuning).predict(PROMPTS)
    assert run_method(name, None, **finetuning, **FAST).predict(PROMPTS) == supervised != expected


@pytest.mark.parametrize("name", ADAPTED)
def test_methods_adapt_to_unlabeled_prompts_and_record_their_cost(
    name: str, run_method: Callable[..., Predictor]
) -> None:
    predictor = run_method(name, **FAST)
    assert predictor.predict(PROMPTS) != run_method("prompt").predict(PROMPTS)
    metrics = predictor.metrics
    assert metrics["adaptation_tokens"] > 0
    assert metrics["answer_tokens"] >= len(PROMPTS)
    assert metrics["sampled_tokens"] > 0
    assert 1 / 3 < metrics["agreement"] < 1
    if name == "policy_gradient":
        assert metrics["share_without_advantage"] < 1
        agreeing = run_method(name, grader=lambda answer, reference: True, **FAST)
        assert agreeing.metrics["share_without_advantage"] == 1
        assert agreeing.predict(PROMPTS) == run_method("prompt").predict(PROMPTS)


def test_an_answer_does_not_depend_on_the_other_prompts(run_method: Callable[..., Predictor]) -> None:
    answers = {"max_tokens": 5, "temperature": 1.0, "num_samples": 2}
    predictor = run_method("majority_vote", answers=answers, **FAST)
    together = predictor.predict(PROMPTS)
    assert [predictor.predict([prompt])[0] for prompt in PROMPTS] == together
    assert all(len(samples) == 2 for samples in together)


def test_supervised_training_learns_the_references(run_method: Callable[..., Predictor]) -> None:
    predictor = run_method("supervised", finetuning={"epochs": 60, "learning_rate": 0.01, "batch_size": 4})
    answers = predictor.predict(TRAIN.inputs)
    assert [exact(str(answer), label) for answer, label in zip(answers, TRAIN.labels, strict=True)] == [True] * 4
    assert predictor.metrics["share_unfinished"] == 0


def test_answers_of_a_model_that_diverged_are_refused(run_method: Callable[..., Predictor]) -> None:
    training = {"epochs": 3, "learning_rate": 1e30, "max_gradient_norm": 0}
    predictor = run_method("supervised", finetuning=training)
    with pytest.raises(DataError, match="NaN, as after a training that diverged; choose a smaller learning_rate"):
        predictor.predict(PROMPTS)


class PlainModel:
    """A plain implementation: one text after the other, without a cache and without packing.

    Parameters
    ----------
    folder
        Folder of the model.
    """

    def __init__(self, folder: Path) -> None:
        model = LanguageModel(folder, torch.device("cpu"))
        self.network, self.tokenizer = model.network, model.tokenizer
        self.network.set_attn_implementation("eager")
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=0.01, weight_decay=0.0)

    def log_probabilities(self, ids: Sequence[int]) -> torch.Tensor:
        table: torch.Tensor = self.network(torch.tensor([list(ids)])).logits[0].log_softmax(-1)
        return table

    @torch.no_grad()
    def sample(self, prompt: Sequence[int], seed: int, num_samples: int, max_tokens: int) -> list[list[int]]:
        samples = []
        for number_of_sample in range(num_samples):
            draws = np.random.default_rng(seed_for(seed, *prompt, "answer", number_of_sample)).random(max_tokens)
            answer: list[int] = []
            for draw in draws:
                sums = self.log_probabilities([*prompt, *answer])[-1].double().exp().cumsum(0)
                answer.append(int(torch.searchsorted(sums, torch.tensor(draw).double(), right=True)))
                if answer[-1] == self.tokenizer.eos_token_id or "\n" in self.tokenizer.decode(answer):
                    break
            samples.append(answer)
        return samples

    def rewards(self, samples: Sequence[Sequence[int]]) -> list[float]:
        texts = [self.tokenizer.decode(ids, skip_special_tokens=True).split("\n")[0] for ids in samples]
        supporters = [sum(same_length(other, text) for other in texts) for text in texts]
        majority = texts[supporters.index(max(supporters))]
        return [float(same_length(text, majority)) for text in texts]

    def step(self, loss: torch.Tensor, rate: float) -> None:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()

    def score(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        with torch.no_grad():
            return torch.stack([self.log_probabilities(prompt)[-1] for prompt in prompts])


def batches_of(num_texts: int, size: int, seed: int) -> Iterator[tuple[float, list[int]]]:
    """Yield the learning rate and the positions of the texts of each step of an epoch."""
    order = np.random.default_rng(seed_for(seed, "order", 0)).permutation(num_texts).tolist()
    num_steps = -(-num_texts // size)
    for step in range(num_steps):
        yield 0.01 * (1 - step / num_steps), order[step * size : (step + 1) * size]


def train_by_majority_plainly(plain: PlainModel, prompts: Sequence[Sequence[int]]) -> None:
    pairs = []
    for prompt in prompts:
        samples = plain.sample(prompt, seed_for(3, "votes"), 16, 5)
        agreeing = [ids for ids, reward in zip(samples, plain.rewards(samples), strict=True) if reward]
        unique = [ids for place, ids in enumerate(agreeing) if ids not in agreeing[:place]]
        pairs += [(prompt, ids) for ids in unique]
    for rate, rows in batches_of(len(pairs), 3, seed_for(3, "adaptation")):
        losses = []
        for row in rows:
            prompt, answer = pairs[row]
            table = plain.log_probabilities([*prompt, *answer])[len(prompt) - 1 : -1]
            losses.append(cross_entropy(table, torch.tensor(answer), reduction="none"))
        plain.step(torch.cat(losses).mean(), rate)


def follow_policy_gradient_plainly(plain: PlainModel, prompts: Sequence[Sequence[int]]) -> None:
    seed = seed_for(3, "policy")
    for step, (rate, rows) in enumerate(batches_of(len(prompts), 3, seed)):
        losses = []
        for row in rows:
            samples = plain.sample(prompts[row], seed_for(seed, step), 16, 5)
            rewards = np.array(plain.rewards(samples))
            advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
            for answer, advantage in zip(samples, advantages, strict=True):
                table = plain.log_probabilities([*prompts[row], *answer])[len(prompts[row]) - 1 : -1]
                chosen = table.gather(1, torch.tensor(answer)[:, None])
                losses.append(-float(advantage) * chosen.mean())
        plain.step(torch.stack(losses).mean(), rate)


@pytest.mark.parametrize(
    ("name", "adapt_plainly"),
    [("majority_vote", train_by_majority_plainly), ("policy_gradient", follow_policy_gradient_plainly)],
)
def test_methods_agree_with_a_plain_implementation(
    name: str,
    adapt_plainly: Callable[[PlainModel, Sequence[Sequence[int]]], None],
    folder: Path,
    run_method: Callable[..., Predictor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[LanguageModel] = []
    predictor_of = fit.AnsweringModel.predictor

    def keep_model(self: fit.AnsweringModel) -> Predictor:
        fitted.append(self.model)
        return predictor_of(self)

    monkeypatch.setattr(fit.AnsweringModel, "predictor", keep_model)
    run_method(name, **FAST)
    plain = PlainModel(folder)
    prompts = [plain.tokenizer.encode(prompt) for prompt in PROMPTS]
    before = plain.score(prompts)
    adapt_plainly(plain, prompts)
    expected = plain.score(prompts)
    with torch.no_grad(), fitted[0].default_attention():
        actual = torch.stack([fitted[0].network(torch.tensor([ids])).logits[0, -1].log_softmax(-1) for ids in prompts])
    assert (expected - before).abs().max() > 0.1
    assert torch.allclose(actual, expected, atol=1e-4)
