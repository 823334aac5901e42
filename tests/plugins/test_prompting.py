"""Prompts of causal language models: tokens at the boundary, room in the context, chats, scores, whole methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_models import SENTENCES, save_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from peekbench import DataError, Dataset, FloatArray, Labeled, SourceRef, SpecError, Task, frame_prompt, render_prompt
from peekbench.spec import load_spec
from peekbench.testing import check_method, make_case
from peekbench.testing.case import Case
from peekbench.uses import MethodSpec, make_use
from peekbench_lm.model import LanguageModel
from peekbench_prompting.answers import find_answers
from peekbench_prompting.examples import Questions, choose_examples
from peekbench_prompting.options import FewShot, ZeroShot
from peekbench_prompting.prompts import DATE, Prompts
from peekbench_prompting.scoring import CONTENT_FREE

ROOT = Path(__file__).parents[2]
torch.set_num_threads(1)  # models this small are slower with more
WHO = ("engine", "rabbit", "minister", "orchestra")
NAMES = ("an engine", "an engine that plays", "a rabbit", "law", "old law\nor new", "the broken pump")
"""Names that begin others, begin alike, or have several lines."""
INSTRUCTION = "Answer with what acts."


def task_of(names: Sequence[str] = NAMES, instruction: str = INSTRUCTION) -> Task:
    return Task("acting", "classification", tuple(names), instruction, SourceRef("toy.words", {}, Path()))


# Tokenizers


def byte_level() -> Any:
    """As GPT-2's: a word's space belongs to it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(tokenizer, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False))


def sentence_piece() -> Any:
    """As Llama's and Mistral's first ones: no words, spaces written as a letter, a token in front.

    Trained so that a colon goes with the space behind it.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator([*" ".join(SENTENCES).split(), *([f": {name}" for name in NAMES] * 400)], trainer)
    made: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer)  # type: ignore[no-untyped-call]
    made.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)]
    )
    made.bos_token = "<s>"
    return made


def unigram() -> Any:
    """SentencePiece's other kind."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    return _trained(tokenizer, trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", special_tokens=["<unk>"]))


def _trained(tokenizer: Any, trainer: Any) -> Any:
    tokenizer.train_from_iterator([render_prompt(text, NAMES, INSTRUCTION) for text in SENTENCES], trainer)
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer)


TOKENIZERS = {"byte_level": byte_level, "sentence_piece": sentence_piece, "unigram": unigram}


@pytest.fixture(scope="module", params=sorted(TOKENIZERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return TOKENIZERS[request.param]()


def test_an_answer_is_what_prompt_and_answer_are_written_as_together(tokenizer: Any) -> None:
    task = task_of()
    prompts = Prompts(tokenizer, task, 2000)
    for prompt, text in zip(prompts.prompts(SENTENCES[:8]), SENTENCES, strict=False):
        bare = render_prompt(text, NAMES, INSTRUCTION)
        assert prompt.ids == tokenizer(bare)["input_ids"]
        answers = prompts.answers(prompt)
        stem = prompt.ids[: len(prompt.ids) - answers.num_replaced]
        for label, name in enumerate(NAMES):
            whole = tokenizer(f"{bare} {name}")["input_ids"]
            assert [*stem, *answers.tokens[label]] == whole == prompts.with_answer(prompt, label)
    if tokenizer.bos_token:  # this one writes the colon with what follows
        assert answers.num_replaced == 1
        assert all(tokenizer.decode(tokens).startswith(":") for tokens in answers.tokens)
    else:
        assert answers.num_replaced == 0
        assert "".join(tokenizer.convert_ids_to_tokens(answers.tokens[3])) in ("Ġlaw", "▁law"), "with the space before"


def test_what_an_answer_changes_in_the_prompt_belongs_to_every_answer() -> None:
    answers = find_answers([1, 2, 3], [[1, 2, 3, 4], [1, 2, 9], [1, 2, 3, 4, 5]])
    assert (answers.num_replaced, answers.tokens) == (1, ((3, 4), (9,), (3, 4, 5)))
    assert find_answers([1, 2], [[1, 2, 3], [1, 2, 3]]).tokens == ((3,), (3,)), "what they share is theirs"
    with pytest.raises(ValueError, match="no token"):
        find_answers([1, 2], [[1, 2, 3], [1, 2]])


def test_a_name_that_leaves_nothing_is_refused() -> None:
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.normalizer = normalizers.Strip()
    with pytest.raises(DataError, match="task acting: an answer is no token long for one of 'law', ' '"):
        Prompts(tokenizer, task_of(["law", " "]), 2000).answers(Prompts(tokenizer, task_of(), 2000).prompts(["a"])[0])


def test_tails_that_differ_are_looked_at_one_by_one(tokenizer: Any) -> None:
    """A text may end in what goes with the line break behind it."""
    texts = ["law", "law\n", "law:\n\n", "law ###", ""]
    prompts = Prompts(tokenizer, task_of(), 2000)
    for text, prompt in zip(texts, prompts.prompts(texts), strict=True):
        expected = tokenizer(f"{render_prompt(text, NAMES, INSTRUCTION)} {NAMES[1]}")["input_ids"]
        assert prompts.with_answer(prompt, 1) == expected


# Room


def test_long_texts_are_cut_in_the_text_alone(tokenizer: Any) -> None:
    short = Prompts(tokenizer, task_of(), 2000)
    (empty,) = short.prompts([""])
    room = 9 + max(len(short.with_answer(empty, label)) for label in range(len(NAMES)))
    texts = ["a", *(" ".join(SENTENCES[start : start + 3]) for start in range(0, 12, 3)), "é law 🐇 " * 40]
    prompts = Prompts(tokenizer, task_of(), room)
    asked = prompts.prompts(texts)
    assert [prompt.is_cut for prompt in asked] == [False, True, True, True, True, True]
    frame = frame_prompt(NAMES, INSTRUCTION)
    for text, prompt in zip(texts, asked, strict=True):
        kept = prompt.string.removeprefix(frame.before).removesuffix(frame.behind)
        assert prompt.string == f"{frame.before}{kept}{frame.behind}"
        assert text.startswith(kept)
        assert prompt.ids == tokenizer(prompt.string)["input_ids"]
        longest = max(len(prompts.with_answer(prompt, label)) for label in range(len(NAMES)))
        assert longest <= room
        assert not prompt.is_cut or longest > room - 8, "no more is cut off than has to be"
    assert prompts.encode(texts) == [prompt.ids for prompt in asked]


def test_texts_are_cut_at_1000_characters_before(tokenizer: Any) -> None:
    (prompt,) = Prompts(tokenizer, task_of(), 5000).prompts(["law" * 500])
    assert prompt.string == render_prompt("law" * 500, NAMES, INSTRUCTION)
    assert prompt.string.count("law") == 333 + 2
    assert not prompt.is_cut


def test_an_instruction_that_does_not_fit_is_told(tokenizer: Any) -> None:
    with pytest.raises(SpecError, match=r"task acting: .* 6 class names.*the context has 9; choose a larger context"):
        Prompts(tokenizer, task_of(), 9)


# Chats

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
BRACKETS = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)


def test_a_chat_has_the_prompt_as_the_users_message() -> None:
    tokenizer = sentence_piece()
    tokenizer.chat_template = BRACKETS
    prompts = Prompts(tokenizer, task_of(), 2000)
    (prompt,) = prompts.prompts(["a rabbit"])
    message = render_prompt("a rabbit", NAMES, INSTRUCTION)
    assert prompt.string == f"<s>[INST] {message} [/INST]"
    assert prompt.ids.count(tokenizer.bos_token_id) == 1
    whole = tokenizer(f"{prompt.string} law", add_special_tokens=False)["input_ids"]
    assert prompts.with_answer(prompt, NAMES.index("law")) == whole, "behind a space, as this template has replies"
    (plain,) = Prompts(tokenizer, task_of(), 2000, chat_template="never").prompts(["a rabbit"])
    assert plain.ids == tokenizer(message)["input_ids"]


def test_a_reply_begins_as_the_template_has_it() -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = CHATML
    prompts = Prompts(tokenizer, task_of(), 2000)
    (prompt,) = prompts.prompts(["a rabbit"])
    assert prompt.string.endswith("### Answer:<|end|>\n<|assistant|>\n")
    assert prompts.with_answer(prompt, 3) == tokenizer(f"{prompt.string}law")["input_ids"]
    tokenizer.chat_template = "{{ date_string }}" + CHATML
    assert Prompts(tokenizer, task_of(), 2000).prompts(["a"])[0].string.startswith(DATE)


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{{ messages[0].content | upper }}", "changes a user's message"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "changes a user's message"),
        ("{{ raise_exception('no system message') }}", "fails: no system message"),
    ],
)
def test_a_template_that_no_prompt_goes_through_is_told(template: str, fault: str) -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = template
    with pytest.raises(DataError, match=f"its chat template {fault}.*; write `chat_template: never`"):
        Prompts(tokenizer, task_of(), 2000)


# Scores


@pytest.fixture(scope="module", params=["gpt2", "llama", "mistral", "gpt_neox"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param), positions=512)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"), positions=512)


def plainly(folder: Path, texts: Sequence[str], task: Task, normalisation: str = "mean") -> FloatArray:
    """Class probabilities by one forward pass for each text and class, written with transformers alone."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    network.eval()
    scores = np.empty((len(texts), task.num_classes))
    for row, text in enumerate(texts):
        prompt = render_prompt(text, task.class_names, task.instruction)
        whole = [tokenizer(f"{prompt} {name}")["input_ids"] for name in task.class_names]
        same = [len(set(tokens)) == 1 for tokens in zip(tokenizer(prompt)["input_ids"], *whole, strict=False)]
        stem = [*same, False].index(False)
        for label, ids in enumerate(whole):
            with torch.no_grad():
                said = network(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            each = [said[place - 1, ids[place]].item() for place in range(stem, len(ids))]
            scores[row, label] = np.mean(each) if normalisation == "mean" else np.sum(each)
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(odds / odds.sum(1, keepdims=True))


ABOUT_WHOM = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("an engine", "an engine that plays", "a rabbit", "the minister"),
    instruction=INSTRUCTION,
)


def case_of(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_use(MethodSpec, use, {"model": str(folder), **options})
    return make_case(use, spec.entry, spec.options, tmp_path, ABOUT_WHOM)


@pytest.mark.parametrize("normalisation", ["mean", "sum"])
def test_scores_are_those_of_the_plain_computation(normalisation: str, folder: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", folder, tmp_path, scoring={"normalisation": normalisation, "batch_size": 4})
    texts = [*case.test[:7], case.test[0] * 3]
    found = case.fit(None).predict(texts)
    wanted = plainly(folder, texts, case.task, normalisation)
    assert np.abs(np.log(found) - np.log(wanted)).max() < 1e-4
    assert np.ptp(wanted, axis=1).min() > 1e-3, "classes can be told apart"


@pytest.mark.parametrize("normalisation", ["mean", "sum"])
def test_scores_of_stories_are_those_of_the_plain_computation(normalisation: str, tmp_path: Path) -> None:
    folder = ROOT.parent / "shared" / "data" / "models" / "stories260K"
    if not folder.is_dir():
        pytest.skip("the model stories260K is not beside the repository")
    case = case_of("prompting.zero_shot", folder, tmp_path, scoring={"normalisation": normalisation})
    texts = list(case.test[:4])
    found = case.fit(None).predict(texts)
    assert np.abs(np.log(found) - np.log(plainly(folder, texts, case.task, normalisation))).max() < 1e-4


def test_content_free_texts_say_what_names_alone_are_worth(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path)
    plain = case.fit(None)
    prior = np.asarray(plain.predict(CONTENT_FREE)).mean(0)
    odds = np.asarray(plain.predict(case.test)) / prior
    corrected = case_of("prompting.zero_shot", gpt2, tmp_path, scoring={"prior_correction": "content_free"})
    assert np.allclose(corrected.predict(None), odds / odds.sum(1, keepdims=True), atol=1e-6)
    assert np.abs(np.asarray(plain.predict(case.test)) - odds / odds.sum(1, keepdims=True)).max() > 1e-3


# Methods


@pytest.mark.parametrize(
    ("use", "more"),
    [("zero_shot", {"scoring": {"prior_correction": "content_free"}}), ("few_shot", {"num_examples": 2})],
)
def test_methods_keep_their_contract(use: str, more: dict[str, Any], gpt2: Path) -> None:
    options = {"model": str(gpt2), "context_length": 400, **more}
    assert [outcome for outcome in check_method(f"prompting.{use}", options) if not outcome.passed] == []


def test_unlabeled_texts_change_nothing(gpt2: Path, tmp_path: Path) -> None:
    for use in ("prompting.zero_shot", "prompting.few_shot"):
        case = case_of(use, gpt2, tmp_path)
        assert np.array_equal(case.predict(None), case.predict(case.unlabeled))


def test_metrics_say_what_was_done(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path, context_length=400)
    predictor = case.fit(None)
    assert "loading_seconds" in predictor.metrics
    predictor.predict([*case.test[:3], "xyz " * 250])
    assert predictor.metrics["share_cut"] == 0.25
    assert predictor.metrics["scoring_seconds"] > 0
    assert predictor.metrics["peak_memory_mb"] > 0
    assert predictor.metrics["share_scored_by_tree"] == 1
    assert "micro_batch_size" not in predictor.metrics


def test_metrics_say_that_a_model_takes_no_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("prompting.zero_shot", save_model("gpt2", tmp_path / "deaf", positions=512), tmp_path)
    monkeypatch.setattr(LanguageModel, "as_mask", lambda self, sees: torch.ones_like(sees))
    predictor = case.fit(None)
    predictor.predict(case.test[:3])
    assert predictor.metrics["share_scored_by_tree"] == 0


def test_memory_that_runs_out_changes_no_number(gpt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("prompting.zero_shot", save_model("gpt2", tmp_path / "own", positions=512), tmp_path)
    roomy = case.predict(None)
    usual = torch.Tensor.logsumexp

    def logsumexp(self: torch.Tensor, *arguments: Any) -> Any:
        if len(self) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return usual(self, *arguments)

    monkeypatch.setattr(torch.Tensor, "logsumexp", logsumexp)
    predictor = case.fit(None)
    assert np.allclose(predictor.predict(case.test), roomy, atol=1e-5)
    assert predictor.metrics["micro_batch_size"] == 4


def test_few_shot_shows_examples_of_every_class_in_an_order_drawn_by_the_seed(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.few_shot", gpt2, tmp_path)
    one, other = (choose_examples(case.train, case.task, None, seed) for seed in (1, 2))
    assert one == choose_examples(case.train, case.task, None, 1) != other
    assert sorted(one) == sorted(other)
    names = case.task.class_names
    assert len(one) == len(case.train.labels)
    assert [{name for _, name in one[start : start + 4]} for start in (0, 4, 8)] == [set(names)] * 3
    label_of = dict(zip(case.train.inputs, case.train.labels, strict=True))
    assert all(names[int(label_of[text])] == name for text, name in one)
    assert len(choose_examples(case.train, case.task, 2, 1)) == 8
    assert not np.allclose(case.predict(None), case.predict(None, seed=2))


def test_few_shot_shows_as_many_examples_as_fit_and_cuts_no_text_for_them() -> None:
    tokenizer = byte_level()
    task = task_of(WHO)
    train = Labeled(SENTENCES[::8], np.array([row // 8 for row in range(32)]))
    examples = choose_examples(train, task, None, 0)

    def make(some: Sequence[tuple[str, str]]) -> Prompts:
        return Prompts(tokenizer, task, 220, some)

    questions = Questions(make, examples)
    number = questions.num_examples
    assert 3 < number < 32
    longest = max(train.inputs, key=lambda text: len(tokenizer(text)["input_ids"]))
    assert not make(examples[:number]).prompts([longest])[0].is_cut
    with_more = Questions(lambda some: Prompts(tokenizer, task, 220, [*some, *examples[:1]] if some else []), examples)
    assert with_more.num_examples == number - 1
    texts = ["a", "law " * 40, *SENTENCES[:4], "law " * 250]
    seen = {
        row: (shown, prompt)
        for shown, _, rows, asked in questions.put(texts)
        for row, prompt in zip(rows.tolist(), asked, strict=True)
    }
    shown = [seen[row][0] for row in range(len(texts))]
    assert shown[0] == shown[2] == number
    assert 0 < shown[1] < number
    assert shown[-1] == 0
    for row, text in enumerate(texts):
        count, prompt = seen[row]
        assert prompt.is_cut == (row == 6)
        if row != 6:
            assert prompt.string == render_prompt(text, WHO, INSTRUCTION, examples[:count])
    assert make(examples[: shown[1] + 1]).prompts([texts[1]])[0].is_cut, "no more examples fit beside this one"


def test_few_shot_records_its_examples(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.few_shot", gpt2, tmp_path, num_examples=1)
    predictor = case.fit(None)
    predictor.predict([*case.test[:3], "xyz " * 250])
    assert predictor.metrics["num_examples"] == 4
    assert predictor.metrics["mean_examples"] == 3
    assert predictor.metrics["share_cut"] == 0.25


def test_models_that_fill_in_masks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="choose a causal language model"):
        case_of("prompting.zero_shot", save_model("bert", tmp_path / "bert"), tmp_path).fit(None)


def test_tokens_are_counted_as_prompts_have_them(gpt2: Path, tmp_path: Path) -> None:
    case = case_of("prompting.zero_shot", gpt2, tmp_path)
    assert case.entry.count_tokens is not None
    counted = case.entry.count_tokens(["z" * 3000, "a"], options=case.options, folders=case.folders)
    assert list(counted.counts) == [1000, 1]
    assert counted.limit is None


def test_defaults_are_the_studys() -> None:
    """arXiv 2410.00179, section 9."""
    options = ZeroShot(model="x")
    assert (options.context_length, options.scoring.normalisation, options.scoring.prior_correction) == (
        512,
        "mean",
        "none",
    )
    assert (options.scoring.precision, FewShot(model="x").num_examples) == ("fp32", None)


def test_the_small_spec_asks_the_built_in_model() -> None:
    spec = load_spec(ROOT / "specs" / "paper" / "zero_shot_small.yaml")
    assert {method.use for method in spec.methods} >= {"prompting.zero_shot", "prompting.few_shot"}
    assert {method.model for method in spec.methods} == {"builtin:gpt2-nano-512"}


def test_a_models_scores_leave_its_training_alone(gpt2: Path) -> None:
    """Its attention is switched for scoring, and back."""
    model = LanguageModel(gpt2, torch.device("cpu"))
    before = model.network.config._attn_implementation
    with model.usual_attention():
        assert model.network.config._attn_implementation != before
    assert model.network.config._attn_implementation == before
