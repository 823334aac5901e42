"""Leases of models, and models from folders and from the Hub."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import pytest
import torch
from loopback_hub import LoopbackHub
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from safetensors.torch import load_file, save_file
from small_models import max_difference, some_texts, weights

from peekbench import DataError, Folders, PeekbenchError
from peekbench_lm import extras
from peekbench_lm.devices import deterministic
from peekbench_lm.extras import LIBRARIES, check_extra
from peekbench_lm.fit import language_models
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.model_files import describe_model, find_model, pin_model
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode, load_tokenizer

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, tmp_path / "cache")


# Models in memory


def test_a_lease_gives_exclusive_use_of_a_restored_model(folder: Path, folders: Folders) -> None:
    model_folder = find_model(str(folder), "", folders)
    lease = language_models.acquire(model_folder, CPU)
    first, fresh = lease.model, weights(lease.model)
    pretrain(first, some_texts(first), RECIPE, 0.15, seed=1)
    trained = weights(first)
    other = language_models.acquire(model_folder, CPU)
    assert other.model is not first
    assert max_difference(weights(other.model), fresh) == 0
    pretrain(other.model, some_texts(first), RECIPE, 0.15, seed=2)
    assert max_difference(weights(first), trained) == 0, "a leased model is used by one fit only"
    first.micro_batch.limit = 2
    del lease
    again = language_models.acquire(model_folder, CPU)
    assert again.model is first
    assert first.micro_batch.limit is None
    assert max_difference(weights(first), fresh) == 0


def test_only_adapters_are_trained_and_restore_removes_them(folder: Path) -> None:
    model = LanguageModel(folder, CPU)
    before = weights(model)
    model.add_adapters(4, 8, 0.1, seed=1)
    assert {name for name, weight in model.network.named_parameters() if weight.requires_grad} == {
        name for name in weights(model) if "lora_" in name
    }
    pretrain(model, some_texts(model), RECIPE, 0.15, seed=1)
    adapted = weights(model)
    assert any(weight.abs().sum() > 0 for name, weight in adapted.items() if "lora_B" in name)
    kept = {name.replace(".base_layer", ""): weight for name, weight in adapted.items() if "lora_" not in name}
    assert max_difference(kept, before) == 0
    model.restore()
    assert max_difference(weights(model), before) == 0
    assert all(weight.requires_grad for weight in model.network.parameters())


def test_training_preserves_the_state_of_torchs_random_generator(model: LanguageModel) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with deterministic(CPU, 1):
        pretrain(model, some_texts(model), RECIPE, 0.15, seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_every_text_has_at_least_one_token_and_at_most_the_limit(model: LanguageModel) -> None:
    encoded = encode(model.tokenizer, ["The engine follows", " ", "x " * 500], 16)
    assert [bool(ids) for ids in encoded] == [True] * 3
    assert max(map(len, encoded)) == 16
    assert model.context_limit(1000) == 64 if model.kind == "causal" else model.context_limit(1000) <= 64


# Sources of models


def break_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def break_architecture(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["T5Model"], "model_type": "t5"}))


def break_weights(folder: Path) -> None:
    kept = load_file(folder / "model.safetensors")
    name = sorted(name for name in kept if "layer.1" in name or "h.1." in name)[0]
    del kept[name]
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def pickle_weights(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def edit_config(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **values}))


def need_own_code(folder: Path) -> None:
    edit_config(folder, model_type="own", architectures=["OwnForCausalLM"], auto_map={"AutoConfig": "own.Config"})


def truncate_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-10])


def add_tokens(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    tokenizer.add_tokens(["zzzz"])
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_config, r"config\.json: Expecting"),
        (need_own_code, "peekbench never runs code of models"),
        (truncate_weights, "transformers cannot load"),
        (add_tokens, r"the tokenizer has \d+ tokens .* \d+ embeddings"),
        (break_architecture, "T5Model is neither a masked nor a causal language model"),
        (break_weights, "1 weights are missing"),
        (pickle_weights, "no weights in safetensors"),
    ],
)
def test_a_damaged_model_folder_is_an_error(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    shutil.copytree(folder, tmp_path / "damaged")
    damage(tmp_path / "damaged")
    with pytest.raises(DataError, match=message) as caught:
        LanguageModel(tmp_path / "damaged", CPU)
    assert "trust_remote_code" not in str(caught.value)


@pytest.mark.parametrize("extra", sorted(LIBRARIES))
def test_a_message_names_the_extra_that_installs_all_missing_libraries(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = [Requirement(text) for text in requires("peekbench") or ()]
    installed = {
        canonicalize_name(part.name)
        for part in requirements
        if part.marker and any(part.marker.evaluate({"extra": name}) for name in (extra, "lm"))
    }
    assert installed >= set(map(canonicalize_name, LIBRARIES[extra]))
    monkeypatch.setattr(extras, "find_spec", lambda library: None)
    with pytest.raises(PeekbenchError) as caught:
        check_extra(extra, "models")
    assert f"models need {' and '.join(LIBRARIES[extra])}: `pip install 'peekbench[{extra}]'`" in str(caught.value)


def test_an_adapter_is_no_model(folders: Folders) -> None:
    (folders.spec / "here").mkdir()
    (folders.spec / "here" / "adapter_config.json").write_text("{}")
    with pytest.raises(DataError, match="has no config.json; .* with adapters merged"):
        find_model("./here", "", folders)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("./nothing", "model ./nothing: there is no folder .*nothing"),
        ("builtin:bert-huge", "builtin:bert-huge: .*builtin:bert-nano, builtin:gpt2-nano, builtin:gpt2-nano-512"),
    ],
)
def test_an_unknown_model_is_an_error(folders: Folders, model: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_model(model, "", folders)


DESCRIBE = """
import json, sys
from pathlib import Path
from peekbench import Folders, PeekbenchError
from peekbench.cache import cache_folder
from peekbench_lm.model_files import describe_model, pin_model
folders = Folders(Path.cwd(), cache_folder())
try:
    answer = {**describe_model(*json.loads(sys.argv[1]), folders), **pin_model(*json.loads(sys.argv[1]), folders)}
except PeekbenchError as error:
    answer = {"error": str(error)}
print(json.dumps(answer))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path / "hub") as hub:
        yield hub


def describe(hub: LoopbackHub, home: Path, model: str, revision: str = "", **variables: str) -> Any:
    """Return the description and the pin of a model, or the error, from a process that uses a loopback Hub."""
    process = hub.python(DESCRIBE, home, json.dumps([model, revision]), **variables)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.slow
def test_a_model_of_the_hub_is_downloaded_at_one_commit_without_files_that_may_contain_code(
    folder: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    branch = hub.branch("some/model")
    shutil.copytree(folder, branch)
    (branch / "modeling.py").write_text("raise SystemExit('code from the Hub was run')")
    (branch / "pytorch_model.bin").write_bytes(b"a pickle")
    commit = hub.keep("some/model")
    answer = describe(hub, tmp_path, "some/model")
    assert answer["commit"] == answer["revision"] == commit
    assert {"config.json", "model.safetensors"} <= set(hub.downloads())
    assert not {"modeling.py", "pytorch_model.bin"} & set(hub.downloads())
    assert answer["sha256"] == describe_model(str(folder), "", Folders(tmp_path, tmp_path))["sha256"]
    (branch / "README.md").write_text("The branch has moved.")
    assert describe(hub, tmp_path, "some/model")["commit"] == commit, "the first answer is cached"
    assert "some/unknown: it does not exist" in describe(hub, tmp_path, "some/unknown")["error"]
    hub.gated.add("some/gated")
    assert "huggingface.co/some/gated" in describe(hub, tmp_path, "some/gated")["error"]
    hub.stop()
    assert describe(hub, tmp_path, "some/model", HF_HUB_OFFLINE="1") == answer
    assert "not in this machine's cache" in describe(hub, tmp_path, "some/other", HF_HUB_OFFLINE="1")["error"]


def test_duplicate_weights_are_not_downloaded(hub: LoopbackHub, tmp_path: Path) -> None:
    """Some repositories repeat the weights in the format of their authors."""
    put_model(hub, "config.json", "consolidated.safetensors", "model.safetensors")
    assert set(describe(hub, tmp_path, "some/model")["sha256"]) == {"config.json", "model.safetensors"}
    assert "consolidated.safetensors" not in hub.downloads()


def test_weights_with_a_changed_bit_are_an_error(hub: LoopbackHub, tmp_path: Path) -> None:
    put_model(hub, "config.json")
    (hub.branch("some/model") / "model.safetensors").write_bytes(b"weights")
    hub.flipped["model.safetensors"] = 1
    assert "the file has the SHA-256" in describe(hub, tmp_path, "some/model")["error"]


def put_model(hub: LoopbackHub, *files: str) -> None:
    hub.branch("some/model").mkdir(parents=True)
    for file in files:
        (hub.branch("some/model") / file).write_text("{}")


def test_folders_and_built_in_models_need_no_pin(folders: Folders) -> None:
    assert pin_model("./here", "", folders) == pin_model("builtin:bert-nano", "", folders) == {}
    assert pin_model("some/model", "a" * 40, folders) == {}
