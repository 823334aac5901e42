"""Methods that use unlabeled texts in context: own answers as examples, votes of neighbors, and choice of a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from process_checks import check_in_this_process
from prompted import INSTRUCTION, reference_probabilities
from sklearn.feature_extraction.text import TfidfVectorizer
from small_models import SENTENCES, save_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from peekbench import Dataset
from peekbench.errors import SpecError
from peekbench.records import FloatArray
from peekbench.spec.components import MethodSpec, make_component
from peekbench_testing import make_case
from peekbench_testing.case import Case

torch.set_num_threads(1)  # small models are slower with more threads
METHODS = ("prompting.self_labeled", "prompting.neighbor_voting", "prompting.prompt_choice")
NAMES = ("an engine", "a rabbit", "the minister")
DATASET = Dataset(inputs=SENTENCES, labels=np.arange(256) % 3, class_names=NAMES, instruction=INSTRUCTION)
UNLABELED, TEXTS = SENTENCES[3:120:13], SENTENCES[:4]  # the texts include the first unlabeled one
HEAD = f"Your task is to classify a given text as one of these categories:\n{chr(10).join(NAMES)}\n\n{INSTRUCTION}\n\n"


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model("gpt2", tmp_path_factory.mktemp("gpt2"), positions=512)


def make_method_case(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(folder), **options})
    return make_case(use, spec.entry, spec.options, tmp_path, DATASET)


def predict(case: Case) -> FloatArray:
    """Return the probabilities of the texts after a fit with the unlabeled texts."""
    return np.asarray(case.fit(UNLABELED).predict(TEXTS))


@pytest.mark.parametrize("use", METHODS)
def test_the_base_arm_is_that_of_zero_shot(use: str, gpt2: Path, tmp_path: Path) -> None:
    plain = make_method_case("prompting.zero_shot", gpt2, tmp_path)
    case = make_method_case(use, gpt2, tmp_path)
    assert np.array_equal(case.predict(None), plain.predict(None))
    of_methods: dict[str, dict[str, Any]] = {
        "prompting.self_labeled": {"num_examples": 1, "selection": "confident"},
        "prompting.neighbor_voting": {"num_neighbors": 2, "similarity": "tfidf", "exclude_self": True},
        "prompting.prompt_choice": {"templates": ["{text} is"], "criterion": "confidence"},
    }
    keys = [
        make_component(MethodSpec, name, {"model": "x", **options}).base_key()
        for name, options in ((use, of_methods[use]), ("prompting.zero_shot", {}))
    ]
    assert keys[0] == keys[1]


@pytest.mark.slow
@pytest.mark.parametrize("use", METHODS)
def test_methods_pass_the_contract_checks(use: str, gpt2: Path, tmp_path: Path) -> None:
    check_in_this_process(make_method_case(use, gpt2, tmp_path, context_length=220, scoring={"batch_size": 100}))


# Examples with the model's own answers


@pytest.mark.parametrize("selection", ["balanced", "confident"])
def test_self_labeled_examples_match_the_reference_implementation(selection: str, gpt2: Path, tmp_path: Path) -> None:
    case = make_method_case("prompting.self_labeled", gpt2, tmp_path, num_examples=2, selection=selection)
    answers = reference_probabilities(gpt2, UNLABELED, case.task)
    chosen: list[tuple[int, int]] = []
    for turn in range(6):
        free = [row for row in range(len(UNLABELED)) if row not in dict(chosen)]
        if selection == "balanced":
            label = turn % 3
            row = max(free, key=lambda row: answers[row, label])
        else:
            row = max(free, key=lambda row: max(answers[row]))
            label = int(answers[row].argmax())
        chosen.append((row, label))
    examples = "".join(f"### Text: {UNLABELED[row]}\n ### Answer: {NAMES[label]}\n\n" for row, label in chosen)
    expected = reference_probabilities(
        gpt2, TEXTS, case.task, write=lambda text: f"{HEAD}{examples}### Text: {text}\n ### Answer:"
    )
    assert np.abs(predict(case) - expected).max() < 1e-4
    assert np.abs(expected - case.fit(None).predict(TEXTS)).max() > 1e-3, "the examples matter"


# Votes of neighbors


def embed(folder: Path, texts: tuple[str, ...]) -> FloatArray:
    """Return the mean of the last hidden states of each text, with transformers alone."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    network.eval()
    with torch.no_grad():
        hidden = [network.transformer(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in texts]
    return np.array([states.mean(0).numpy() for states in hidden])


@pytest.mark.parametrize("similarity", ["hidden", "tfidf"])
def test_votes_of_neighbors_match_the_reference_implementation(similarity: str, gpt2: Path, tmp_path: Path) -> None:
    case = make_method_case("prompting.neighbor_voting", gpt2, tmp_path, num_neighbors=3, similarity=similarity)
    if similarity == "hidden":
        known, rows = (embed(gpt2, texts) for texts in (UNLABELED, TEXTS))
        known, rows = known - known.mean(0), rows - known.mean(0)
    else:
        words = TfidfVectorizer(sublinear_tf=True).fit(UNLABELED)
        known, rows = (words.transform(texts).toarray() for texts in (UNLABELED, TEXTS))
    votes, own = (reference_probabilities(gpt2, texts, case.task) for texts in (UNLABELED, TEXTS))
    expected = []
    for row, vector in enumerate(rows):
        cosines = [vector @ other / np.linalg.norm(vector) / np.linalg.norm(other) for other in known]
        nearest = sorted(range(len(known)), key=lambda other: -cosines[other])[:3]
        expected.append((own[row] + sum(votes[other] for other in nearest)) / 4)
    assert np.abs(predict(case) - expected).max() < 1e-4
    assert np.abs(own - expected).max() > 1e-3, "the neighbors matter"


def test_a_text_votes_twice_unless_it_is_excluded(gpt2: Path, tmp_path: Path) -> None:
    own, votes = (
        np.asarray(make_method_case("prompting.zero_shot", gpt2, tmp_path).fit(None).predict(texts))
        for texts in (TEXTS, UNLABELED)
    )
    number = len(UNLABELED)
    assert TEXTS[3] == UNLABELED[0]
    included, excluded = (
        predict(make_method_case("prompting.neighbor_voting", gpt2, tmp_path, num_neighbors=99, exclude_self=choice))
        for choice in (False, True)
    )
    assert np.allclose(included, (own + votes.sum(0)) / (1 + number), atol=1e-6)
    assert np.allclose(excluded[:3], included[:3], atol=1e-6)
    assert np.allclose(excluded[3], votes.mean(0), atol=1e-6)


# Choice of a prompt

TEMPLATES = ("{instruction}\n\n{text}\n{class_names}?", "One of {class_names}: {text} =")


@pytest.mark.parametrize("criterion", ["agreement", "confidence", "mutual_information"])
def test_the_chosen_prompt_matches_the_reference_implementation(criterion: str, gpt2: Path, tmp_path: Path) -> None:
    case = make_method_case("prompting.prompt_choice", gpt2, tmp_path, templates=TEMPLATES, criterion=criterion)
    names = ", ".join(NAMES)
    writers = [None, lambda text: f"{INSTRUCTION}\n\n{text}\n{names}?", lambda text: f"One of {names}: {text} ="]
    answers = [reference_probabilities(gpt2, UNLABELED, case.task, write=write) for write in writers]
    values = []
    for table in answers:
        entropies = -(table * np.log(table)).sum(1)
        mean = table.mean(0)
        ensemble = np.mean(answers, 0)
        values.append(
            {
                "agreement": np.mean([a.argmax() == b.argmax() for a, b in zip(table, ensemble, strict=True)]),
                "confidence": np.mean([row.max() for row in table]),
                "mutual_information": -(mean * np.log(mean)).sum() - entropies.mean(),
            }[criterion]
        )
    predictor = case.fit(UNLABELED)
    chosen = int(np.argmax(values))
    assert predictor.metrics["chosen_prompt"] == chosen
    assert [predictor.metrics[f"{criterion}_{number}"] for number in range(3)] == pytest.approx(values, abs=1e-5)
    expected = reference_probabilities(gpt2, TEXTS, case.task, write=writers[chosen])
    assert np.abs(predictor.predict(TEXTS) - expected).max() < 1e-4


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("Which class?", "write {text} once in the template 'Which class\\?'; it occurs 0 times"),
        ("{text} {text}", "it occurs 2 times"),
        ("{text} {classes}", "{classes} in the template .* is unknown; write {class_names}, {instruction}, {text}"),
    ],
)
def test_a_wrong_template_is_refused(template: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        make_component(MethodSpec, "prompting.prompt_choice", {"model": "x", "templates": [template]})
