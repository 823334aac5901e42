"""Prompts of causal language models: tokens at the boundary, room in the context, chats."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from prompted import INSTRUCTION, NAMES, TOKENIZERS, byte_level, sentence_piece, task_of
from small_models import SENTENCES
from tokenizers import normalizers

from peekbench import DataError
from peekbench.data import frame_prompt, render_prompt
from peekbench.errors import SpecError
from peekbench_prompting.answers import find_answers
from peekbench_prompting.prompts import DATE, Prompts

torch.set_num_threads(1)  # models this small are slower with more


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
