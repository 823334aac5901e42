"""Task-adaptive pretraining: arms, options, metrics, runs and the specs of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from process_checks import check_in_this_process
from small_models import KINDS, SENTENCES, save_model
from transformers import BertConfig, BertForPreTraining, BertForSequenceClassification

from peekbench import Dataset
from peekbench.errors import SpecError
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import load_spec
from peekbench_finetune.classification import Classifier, pool
from peekbench_finetune.options import Classification
from peekbench_lm.fit import language_models
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Step
from peekbench_lm.likelihood import text_log_likelihoods
from peekbench_lm.model_files import find_model
from peekbench_lm.tokenizer import encode
from peekbench_lm.training_loop import shuffle_batches
from peekbench_testing import check_entry, make_case
from peekbench_testing.case import Case

SPECS = Path(__file__).parents[2] / "specs"
torch.set_num_threads(1)  # more threads slow down models of this size
QUICK = {
    "context_length": 32,
    "precision": "fp32",
    "pretraining": {"epochs": 2, "learning_rate": 3e-3},
    "classification": {"epochs": 6, "learning_rate": 1e-2, "pooling": "mean"},
}


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


def case_of(use: str, folder: Path, tmp_path: Path, **options: Any) -> Case:
    spec = make_component(MethodSpec, use, {"model": str(folder), **QUICK, **options})
    return make_case(use, spec.entry, spec.options, tmp_path, SUBJECTS)


# The class is the subject of the sentence: 64 sentences of each class, twice.
SUBJECTS = Dataset(
    inputs=SENTENCES * 2,
    labels=np.array([row // 64 for row in range(256)] * 2),
    class_names=("engine", "rabbit", "minister", "orchestra"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "name", "reduced"), [("finetune.tapt", "bert", False), ("finetune.overtrain", "gpt2", True)]
)
def test_methods_pass_the_contract_checks(use: str, name: str, reduced: bool, tmp_path: Path) -> None:
    """Check one method with each kind of model; the causal one with lower precision and rank, and scores of texts.

    Both share what could depend on the process; the second has more of it.
    """
    options = {
        "model": str(save_model(name, tmp_path / name)),
        "context_length": 32,
        "precision": "bf16" if reduced else "fp32",
        "lora": {"rank": 4} if reduced else None,
        "score_texts": reduced,
        "pretraining": {"epochs": 1, "learning_rate": 3e-3, "batch_size": 32},
        "classification": {"epochs": 1, "learning_rate": 1e-2, "batch_size": 32, "pooling": "mean"},
    }
    if reduced:
        assert [outcome for outcome in check_entry(use, options) if not outcome.passed] == []
    else:
        spec = make_component(MethodSpec, use, options)
        check_in_this_process(make_case(use, spec.entry, spec.options, tmp_path))


@pytest.mark.slow
def test_pretraining_and_classification_learn_and_report_metrics(folder: Path, tmp_path: Path) -> None:
    case = case_of("finetune.tapt", folder, tmp_path)
    base, extra = case.fit(None), case.fit(case.unlabeled)
    assert not any(name.startswith("pretraining") for name in base.metrics)
    tokens = extra.metrics["pretraining_tokens"]
    assert tokens > 2 * 3 * len(case.unlabeled), "two epochs"
    assert extra.metrics["pretraining_tokens_per_second"] == tokens / extra.metrics["pretraining_seconds"]
    assert extra.metrics["pretraining_loss_2"] < extra.metrics["pretraining_loss_1"]
    assert {"classification_loss", "classification_seconds", "loading_seconds", "peak_memory_mb"} <= base.metrics.keys()
    assert "micro_batch_size" not in base.metrics
    labels = [next(row for row, name in enumerate(case.task.class_names) if name in text) for text in case.test]
    for predictor in (base, extra):
        assert (np.asarray(predictor.predict(case.test)).argmax(1) == np.array(labels)).mean() > 0.6  # chance is 0.25
    assert not np.allclose(base.predict(case.test), extra.predict(case.test))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_architecture_is_pretrained_and_finetuned(name: str, tmp_path: Path) -> None:
    case = case_of("finetune.tapt", save_model(name, tmp_path / name), tmp_path, precision="bf16")
    predictor = case.fit(case.unlabeled)
    assert np.isfinite(list(predictor.metrics.values())).all()
    assert predictor.metrics["pretraining_loss_2"] < predictor.metrics["pretraining_loss_1"]


@pytest.mark.slow
def test_defaults_are_those_of_the_paper(folder: Path, tmp_path: Path) -> None:
    """arXiv 2410.00179, section 4: BERT two epochs and [CLS], GPT-2 one epoch and the last token."""
    spec = make_component(MethodSpec, "finetune.tapt", {"model": str(folder)})
    case = make_case(spec.use, spec.entry, spec.options, tmp_path, SUBJECTS)
    metrics = case.fit(case.unlabeled).metrics
    assert ("pretraining_loss_2" in metrics) == ("bert" in folder.name)
    assert "pretraining_loss_3" not in metrics
    pooling = "cls" if "bert" in folder.name else "last"
    same = make_component(MethodSpec, "finetune.tapt", {"model": str(folder), "classification": {"pooling": pooling}})
    assert np.array_equal(case.predict(None), case.predict(None, options=same.options))
    other = make_component(MethodSpec, "finetune.tapt", {"model": str(folder), "classification": {"pooling": "mean"}})
    assert not np.array_equal(case.predict(None), case.predict(None, options=other.options))
    options = spec.raw_options()
    pretraining, classification = options["pretraining"], options["classification"]
    assert options["context_length"] == 256
    assert pretraining["batch_size"] == classification["batch_size"] == 16
    assert (pretraining["learning_rate"], pretraining["mask_probability"]) == (1e-4, 0.15)
    assert (classification["learning_rate"], classification["epochs"]) == (5e-5, 3)
    assert (classification["weight_decay"], classification["schedule"]) == (0.01, "linear")


@pytest.mark.slow
def test_overtraining_takes_more_epochs_and_reports_the_loss_of_plain_pretraining(folder: Path, tmp_path: Path) -> None:
    plain = case_of("finetune.tapt", folder, tmp_path)
    more = case_of("finetune.overtrain", folder, tmp_path)
    metrics, over = plain.fit(plain.unlabeled).metrics, more.fit(more.unlabeled).metrics
    assert over["plain_pretraining_loss"] == metrics["pretraining_loss_2"]
    assert over["pretraining_loss_4"] < over["plain_pretraining_loss"]
    assert over["pretraining_tokens"] == 2 * metrics["pretraining_tokens"]
    assert np.array_equal(plain.predict(None), more.predict(None))
    same = case_of("finetune.tapt", folder, tmp_path, pretraining={**QUICK["pretraining"], "epochs": 4})  # type: ignore[dict-item]
    assert np.array_equal(same.predict(same.unlabeled), more.predict(more.unlabeled))
    with pytest.raises(SpecError, match="overtraining_epochs: 2"):
        case_of("finetune.overtrain", folder, tmp_path, overtraining_epochs=2).fit(plain.unlabeled)
    three = case_of("finetune.overtrain", folder, tmp_path, overtraining_epochs=3)
    assert "pretraining_loss_4" not in three.fit(three.unlabeled).metrics


@pytest.mark.slow
def test_texts_are_scored_in_the_state_after_pretraining(tmp_path: Path) -> None:
    folder = save_model("gpt2", tmp_path / "gpt2")
    case = case_of("finetune.tapt", folder, tmp_path, score_texts=True)
    predictor = case.fit(case.unlabeled)
    assert predictor.log_likelihoods is not None
    lease = language_models.acquire(find_model(str(folder), "", case.folders), torch.device("cpu"), "trained")
    fresh = text_log_likelihoods(lease.model, case.test, 32)
    base = case.fit(None)
    assert base.log_likelihoods is not None
    scored = predictor.log_likelihoods(case.test)
    np.testing.assert_allclose(base.log_likelihoods(case.test), fresh, rtol=1e-5)
    assert (scored > fresh).all(), "pretraining makes all texts of this language more probable"
    plain = case_of("finetune.tapt", folder, tmp_path)
    assert plain.fit(None).log_likelihoods is None
    assert np.array_equal(predictor.predict(case.test), plain.predict(plain.unlabeled)), "the classifier is the same"
    assert np.array_equal(predictor.log_likelihoods(case.test), scored)


def test_pooling_takes_the_first_token_the_last_token_or_the_mean() -> None:
    hidden = torch.arange(12.0).view(6, 2)
    (part,) = Step([[1], [1, 1, 1], [1, 1]]).parts(3, torch.device("cpu"))  # sorted: lengths 1, 2, 3
    assert pool(hidden, part, "cls").tolist() == [[0, 1], [2, 3], [6, 7]]
    assert pool(hidden, part, "last").tolist() == [[0, 1], [4, 5], [10, 11]]
    assert pool(hidden, part, "mean").tolist() == [[0, 1], [3, 4], [8, 9]]


@pytest.fixture(scope="module")
def folder_with_pooler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_model("bert", tmp_path_factory.mktemp("pooled"))
    torch.manual_seed(2)
    BertForPreTraining(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("head", ["bert", "bert_new_pooler"])
def test_head_of_bert_gives_the_logits_of_transformers(head: Any, folder_with_pooler: Path) -> None:
    model = LanguageModel(folder_with_pooler, torch.device("cpu"))
    classifier = Classifier(model, 4, "cls", 0, head)
    peer: Any = BertForSequenceClassification.from_pretrained(folder_with_pooler, num_labels=4)
    peer.eval()
    weights = classifier.head.state_dict()
    has_same = torch.equal(weights["pooler.weight"], peer.bert.pooler.dense.weight)
    assert has_same == (head == "bert"), "both begin with the pooler of the checkpoint, or ours with a new one"
    for layer, name in ((peer.bert.pooler.dense, "pooler"), (peer.classifier, "linear")):
        layer.load_state_dict({"weight": weights[f"{name}.weight"], "bias": weights[f"{name}.bias"]})
    step = Step(encode(model.tokenizer, SENTENCES[::40], 32))
    (part,) = step.parts(len(step.texts), model.device)
    model.network.eval()
    classifier.head.eval()
    with forward_context(part, 0, "fp32"), torch.no_grad():
        logits = classifier.logits(part)
        expected = torch.cat([peer(torch.tensor([text])).logits for text in step.texts])
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_sets_of_labels_are_learned_as_by_a_plain_loop(tmp_path: Path) -> None:
    """Compare losses and probabilities with transformers. Another label has no example."""
    folder = save_model("bert", tmp_path / "own", dropout=0.0)
    model = LanguageModel(folder, torch.device("cpu"))
    texts = encode(model.tokenizer, SENTENCES[::10], 32)
    labels = np.array([["rabbit" in text, "plays" in text, False] for text in SENTENCES[::10]], dtype=np.int64)
    classifier = Classifier(model, 3, "cls", 0, "bert_new_pooler", "multilabel")
    peer: Any = BertForSequenceClassification.from_pretrained(
        folder, num_labels=3, problem_type="multi_label_classification"
    )
    weights = classifier.head.state_dict()
    for layer, name in ((peer.bert.pooler.dense, "pooler"), (peer.classifier, "linear")):
        layer.load_state_dict({"weight": weights[f"{name}.weight"], "bias": weights[f"{name}.bias"]})

    recipe = Classification(epochs=3, batch_size=8, learning_rate=5e-3, weight_decay=0).recipe()
    epochs = shuffle_batches(len(texts), recipe, 5)
    optimizer = torch.optim.AdamW(peer.parameters(), weight_decay=0)
    peer.train()
    losses = np.zeros(len(epochs))
    for number, rows in enumerate([batch for epoch in epochs for batch in epoch]):
        batch = model.tokenizer.pad({"input_ids": [texts[row] for row in rows]}, return_tensors="pt")
        loss = peer(**batch, labels=torch.tensor(labels[rows], dtype=torch.float32)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = 5e-3 * (1 - number / sum(map(len, epochs)))
        optimizer.step()
        losses[number // len(epochs[0])] += loss.item() * len(rows) / len(texts)
    peer.eval()
    with torch.no_grad():
        expected = torch.cat([peer(torch.tensor([text])).logits for text in texts])

    assert classifier.fit(texts, labels, recipe, 5).losses == pytest.approx(losses, abs=1e-5)
    np.testing.assert_allclose(classifier.predict(texts, 64), expected.sigmoid(), atol=1e-4)


@pytest.mark.slow
def test_pretraining_can_discard_the_pooler_as_in_the_study(folder_with_pooler: Path, tmp_path: Path) -> None:
    def predictions(adapts: bool, head: str, discards: bool) -> Any:
        options: dict[str, Any] = {
            "classification": {"epochs": 1, "learning_rate": 1e-3, "head": head},
            "pretraining": {"epochs": 1, "discards_pooler": discards},
        }
        case = case_of("finetune.tapt", folder_with_pooler, tmp_path, **options)
        return case.predict(case.unlabeled if adapts else None)

    new = predictions(True, "bert_new_pooler", False)
    assert not np.allclose(predictions(True, "bert", False), new)
    assert np.array_equal(predictions(True, "bert", True), new)
    assert np.array_equal(predictions(False, "bert", True), predictions(False, "bert", False))


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((SPECS / "paper").glob("*.yaml")) if "use: finetune." in path.read_text()],
    ids=lambda path: path.stem,
)
def test_specs_of_the_paper_have_its_hyperparameters(path: Path) -> None:
    spec = load_spec(path)
    for method in spec.methods:
        for task in spec.tasks:
            if not task.use.startswith("hf."):
                continue
            options: Any = spec.options(method, task.name)
            gpt2 = method.model == "gpt2"
            epochs, batch, pretraining, predicting = PAPER.get((task.use, gpt2), (3, 16, 16, 64))
            assert (options.classification.epochs, options.classification.batch_size) == (epochs, batch), task.name
            assert options.pretraining.batch_size == pretraining
            assert options.classification.prediction_batch_size == predicting


SMALL = (1, 4, 8, 32)
PAPER = {
    **{(f"hf.{task}", gpt2): SMALL for task in ("enron_spam", "yelp_review_full") for gpt2 in (False, True)},
    **{(f"hf.{task}", True): SMALL for task in ("blog_authorship_corpus", "movie_rationales", "craigslist_bargains")},
    **{
        (f"hf.{task}", False): (1, 8, 8, 32)
        for task in ("blog_authorship_corpus", "movie_rationales", "craigslist_bargains")
    },
    **{("hf.frenk_hate_en", gpt2): (1, 8, 8, 32) for gpt2 in (False, True)},
    ("hf.yahoo_answers_topics", False): (1, 16, 8, 64),
    ("hf.yahoo_answers_topics", True): (1, 4, 8, 16),
    ("hf.app_reviews", True): (3, 8, 16, 64),
}
