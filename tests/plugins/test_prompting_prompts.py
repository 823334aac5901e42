"""Prompts of causal language models: tokens between prompt and answer, cutting to the context, chat templates."""

from __future__ import annotations

from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
from prompted import INSTRUCTION, NAMES, TOKENIZERS, byte_level, make_task, sentence_piece
from small_models import SENTENCES

from peekbench import DataError
from peekbench.errors import SpecError
from peekbench_prompting.frame import frame_prompt
from peekbench_prompting.prompts import DATE, PromptEncoder, find_answer_tokens

torch.set_num_threads(1)  # small models are slower with more threads


@pytest.fixture(scope="module", params=sorted(TOKENIZERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return TOKENIZERS[request.param]()


@pytest.mark.parametrize("names", [NAMES, tuple("12345"), ("Human being", "Human law", "hate", "not hate")])
def test_prompt_and_answer_are_tokenized_together(names: tuple[str, ...], tokenizer: Any) -> None:
    encoder = PromptEncoder(tokenizer, make_task(names), 2000)
    for prompt, text in zip(encoder.encode(SENTENCES[:8]), SENTENCES, strict=False):
        bare = frame_prompt(names, INSTRUCTION).around(text)
        assert prompt.ids == tokenizer(bare)["input_ids"]
        answers = encoder.answer_tokens(prompt)
        stem = prompt.ids[: len(prompt.ids) - answers.num_replaced]
        for label, name in enumerate(names):
            answered = tokenizer(f"{bare} {name}")["input_ids"]
            assert [*stem, *answers.tokens[label]] == answered == encoder.with_answer(prompt, label)
    joined = ":" if tokenizer.bos_token else ""  # this tokenizer joins the colon with the next characters
    assert answers.num_replaced == len(joined)
    assert [tokenizer.decode(tokens) for tokens in answers.tokens] == [f"{joined} {name}" for name in names]


def test_prompt_tokens_that_an_answer_changes_belong_to_every_answer() -> None:
    answers = find_answer_tokens([1, 2, 3], [[1, 2, 3, 4], [1, 2, 9], [1, 2, 3, 4, 5]])
    assert (answers.num_replaced, answers.tokens) == (1, ((3, 4), (9,), (3, 4, 5)))
    assert find_answer_tokens([1, 2], [[1, 2, 3], [1, 2, 3]]).tokens == ((3,), (3,)), (
        "shared tokens belong to both answers"
    )
    with pytest.raises(ValueError, match="no token"):
        find_answer_tokens([1, 2], [[1, 2, 3], [1, 2]])


def test_prompts_with_different_tails_have_their_own_answers(tokenizer: Any) -> None:
    """A tokenizer may join the end of a text with the following line break."""
    texts = ["law", "law\n", "law:\n\n", "law ###", ""]
    encoder = PromptEncoder(tokenizer, make_task(), 2000)
    for text, prompt in zip(texts, encoder.encode(texts), strict=True):
        expected = tokenizer(f"{frame_prompt(NAMES, INSTRUCTION).around(text)} {NAMES[1]}")["input_ids"]
        assert encoder.with_answer(prompt, 1) == expected


# Cutting to the context


def test_only_the_text_of_a_long_prompt_is_cut(tokenizer: Any) -> None:
    large = PromptEncoder(tokenizer, make_task(), 2000)
    (empty,) = large.encode([""])
    limit = 9 + max(len(large.with_answer(empty, label)) for label in range(len(NAMES)))
    texts = ["a", *(" ".join(SENTENCES[start : start + 3]) for start in range(0, 12, 3)), "é law 🐇 " * 40]
    encoder = PromptEncoder(tokenizer, make_task(), limit)
    prompts = encoder.encode(texts)
    assert [prompt.is_cut for prompt in prompts] == [False, True, True, True, True, True]
    frame = frame_prompt(NAMES, INSTRUCTION)
    for text, prompt in zip(texts, prompts, strict=True):
        kept = prompt.string.removeprefix(frame.before).removesuffix(frame.behind)
        assert prompt.string == f"{frame.before}{kept}{frame.behind}"
        assert text.startswith(kept)
        assert prompt.ids == tokenizer(prompt.string)["input_ids"]
        longest = max(len(encoder.with_answer(prompt, label)) for label in range(len(NAMES)))
        assert longest <= limit
        assert not prompt.is_cut or longest > limit - 8, "no more is cut off than necessary"


def test_an_instruction_longer_than_the_context_is_refused(tokenizer: Any) -> None:
    with pytest.raises(SpecError, match="task acting: .* 6 class names.*context has 9.*context_length"):
        PromptEncoder(tokenizer, make_task(), 9)


# Chat templates

CHATML = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
BRACKETS = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"
)


def test_a_chat_contains_the_prompt_as_the_user_message() -> None:
    tokenizer = sentence_piece()
    tokenizer.chat_template = BRACKETS
    encoder = PromptEncoder(tokenizer, make_task(), 2000)
    (prompt,) = encoder.encode(["a rabbit"])
    message = frame_prompt(NAMES, INSTRUCTION).around("a rabbit")
    assert prompt.string == f"<s>[INST] {message} [/INST]"
    assert prompt.ids.count(tokenizer.bos_token_id) == 1
    answered = tokenizer(f"{prompt.string} law", add_special_tokens=False)["input_ids"]
    assert encoder.with_answer(prompt, NAMES.index("law")) == answered, "this template puts a space before replies"
    (plain,) = PromptEncoder(tokenizer, make_task(), 2000, chat_template="never").encode(["a rabbit"])
    assert plain.ids == tokenizer(message)["input_ids"]


def test_the_template_determines_the_start_of_a_reply() -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = CHATML
    encoder = PromptEncoder(tokenizer, make_task(), 2000)
    (prompt,) = encoder.encode(["a rabbit"])
    assert prompt.string.endswith("### Answer:<|end|>\n<|assistant|>\n")
    assert encoder.with_answer(prompt, 3) == tokenizer(f"{prompt.string}law")["input_ids"]
    tokenizer.chat_template = "{{ date_string }}" + CHATML
    assert PromptEncoder(tokenizer, make_task(), 2000).encode(["a"])[0].string.startswith(DATE)


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ messages[0].content | upper }}", "changes a user's message"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "changes a user's message"),
        ("{{ raise_exception('no system message') }}", "fails: no system message"),
    ],
)
def test_a_template_that_fails_or_changes_the_prompt_is_refused(template: str, problem: str) -> None:
    tokenizer = byte_level()
    tokenizer.chat_template = template
    with pytest.raises(DataError, match=f"chat template {problem}.*`chat_template: never`"):
        PromptEncoder(tokenizer, make_task(), 2000)
