"""Estimates of the memory of a GPU that fits need, and what methods ask of an executor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest

from peekbench import Folders, Options
from peekbench.records import Resources
from peekbench_finetune.options import Tapt
from peekbench_lm import provision
from peekbench_lm.memory import GB, estimate_memory
from peekbench_lm.options import LanguageModelOptions
from peekbench_prompting.options import Packed, Pretrain, ZeroShot

BERT = {"hidden_size": 768, "num_hidden_layers": 12, "vocab_size": 30522}
GPT2 = {"n_embd": 768, "n_layer": 12, "vocab_size": 50257}
MISTRAL = {"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 32768}


def save_shape(folder: Path, num_weights: int, config: dict[str, Any]) -> None:
    """Write the configuration and the header of the weights of a model, without the weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "any", **config}))
    tensor = {"dtype": "F32", "shape": [num_weights // 1000, 1000], "data_offsets": [0, 0]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "weight": tensor}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    save_shape(tmp_path / "bert", 110_000_000, BERT)
    save_shape(tmp_path / "gpt2", 124_000_000, GPT2)
    save_shape(tmp_path / "mistral", 7_248_000_000, MISTRAL)
    return Folders(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "settings", "least", "most"),
    [
        ("bert", Tapt, {}, 4, 7),
        ("gpt2", Tapt, {}, 4, 8),
        ("gpt2", Tapt, {"lora": {}}, 3, 5),
        ("gpt2", ZeroShot, {}, 1.5, 4),
        ("mistral", Pretrain, {"pretraining": {"batch_size": 16}}, 9, 20),
        ("mistral", Packed, {}, 9, 20),
        ("mistral", ZeroShot, {}, 30, 50),  # in fp32
        ("mistral", Tapt, {}, 180, 260),
    ],
)
def test_estimates_are_of_the_right_size(
    name: str, options: type[Options], settings: dict[str, Any], least: float, most: float, folders: Folders
) -> None:
    parsed = options.model_validate({"model": f"./{name}", **settings})
    assert isinstance(parsed, LanguageModelOptions)
    assert least * GB <= estimate_memory(parsed, folders) <= most * GB


@pytest.mark.parametrize("has_cuda", [True, False])
def test_methods_ask_for_a_gpu_if_torch_can_use_one(
    has_cuda: bool, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(device: str) -> Resources:
        options = Tapt.model_validate({"model": "./bert", "device": device, "threads": 2})
        return provision.resources(options=options, folders=folders)

    monkeypatch.setattr(provision, "has_cuda", lambda: has_cuda)
    required = ask("cuda")
    assert (required.gpus, required.is_estimate, required.is_gpu_optional) == (1, True, False)
    assert required.gpu_memory > 4 * GB
    automatic = ask("auto")
    assert (automatic.gpus, automatic.is_gpu_optional) == (has_cuda, has_cuda)
    assert ask("cpu") == Resources(cpus=2)
