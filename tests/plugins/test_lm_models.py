"""Language models as they are lent to fits: from folders, from the Hub, or built in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loopback_hub import LoopbackHub
from small_models import farthest, some_texts, weights

from peekbench import DataError, Folders
from peekbench.errors import SpecError
from peekbench_lm import builtin, corpus
from peekbench_lm.devices import choose_device, reproducibly
from peekbench_lm.folder import describe_model, find_model, pin_model
from peekbench_lm.model import LanguageModel, borrow
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokens import encode
from peekbench_lm.training import Recipe

CPU = torch.device("cpu")
torch.set_num_threads(1)  # models this small are slower with more
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, tmp_path / "cache")


# Models in memory


def test_a_model_is_lent_as_loaded_and_to_one_at_a_time(folder: Path, folders: Folders) -> None:
    found = find_model(str(folder), "", folders)
    loan = borrow(found, CPU)
    first, fresh = loan.model, weights(loan.model)
    pretrain(first, some_texts(first), RECIPE, 0.15, seed=1)
    trained = weights(first)
    other = borrow(found, CPU)
    assert other.model is not first
    assert farthest(weights(other.model), fresh) == 0
    pretrain(other.model, some_texts(first), RECIPE, 0.15, seed=2)
    assert farthest(weights(first), trained) == 0, "it is nobody else's while it is lent"
    first.micro_batch.limit = 2
    del loan
    again = borrow(found, CPU)
    assert again.model is first
    assert first.micro_batch.limit is None
    assert farthest(weights(first), fresh) == 0


def test_adapters_alone_are_trained_and_leave_nothing_behind(folder: Path) -> None:
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
    assert farthest(kept, before) == 0
    model.restore()
    assert farthest(weights(model), before) == 0
    assert all(weight.requires_grad for weight in model.network.parameters())


def test_the_generator_of_torch_stays_as_it_was(model: LanguageModel) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with reproducibly(CPU, 1):
        pretrain(model, some_texts(model), RECIPE, 0.15, seed=1)
    assert torch.equal(torch.rand(3), expected)


def test_texts_become_tokens_whatever_they_are(model: LanguageModel) -> None:
    encoded = encode(model.tokenizer, ["The engine follows", " ", "x " * 500], 16)
    assert [bool(ids) for ids in encoded] == [True] * 3
    assert max(map(len, encoded)) == 16
    assert model.limit(1000) == 64 if model.kind == "causal" else model.limit(1000) <= 64


def test_a_device_that_is_not_there_is_an_error() -> None:
    assert choose_device("cpu") == CPU
    if not torch.cuda.is_available():
        with pytest.raises(SpecError, match="device: cuda: torch finds no such device"):
            choose_device("cuda")


# Where models are from


def break_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def break_architecture(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["T5Model"], "model_type": "t5"}))


def break_weights(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    kept = load_file(folder / "model.safetensors")
    name = sorted(name for name in kept if "layer.1" in name or "h.1." in name)[0]
    del kept[name]
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def pickle_weights(folder: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (break_config, r"config\.json: Expecting"),
        (break_architecture, "T5Model is neither a masked nor a causal language model"),
        (break_weights, "1 weights are missing"),
        (pickle_weights, "give a model whose weights are in safetensors"),
    ],
)
def test_a_folder_that_is_no_model_is_an_error(
    folder: Path, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    import shutil

    shutil.copytree(folder, tmp_path / "spoilt")
    spoil(tmp_path / "spoilt")
    with pytest.raises(DataError, match=message):
        LanguageModel(tmp_path / "spoilt", CPU)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("./nothing", "there is no folder .*nothing; a model's id on the Hub has no"),
        ("builtin:bert-huge", "there are builtin:bert-nano, builtin:gpt2-nano, builtin:gpt2-nano-512"),
    ],
)
def test_a_model_that_is_not_there_is_an_error(folders: Folders, model: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_model(model, "", folders)


FIND = """
import json, sys
from pathlib import Path
from peekbench import Folders, PeekbenchError
from peekbench.cache import cache_folder
from peekbench_lm.folder import describe_model, pin_model
folders = Folders(Path.cwd(), cache_folder())
try:
    said = {**describe_model(*json.loads(sys.argv[1]), folders), **pin_model(*json.loads(sys.argv[1]), folders)}
except PeekbenchError as error:
    said = {"error": str(error)}
print(json.dumps(said))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path / "hub") as served:
        yield served


def find(hub: LoopbackHub, home: Path, *asked: str, **more: str) -> Any:
    done = hub.python(FIND, home, json.dumps(asked), **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_model_comes_from_the_hub_at_one_commit_without_anything_that_may_hold_code(
    folder: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    import shutil

    served = hub.branch("somebody/small")
    shutil.copytree(folder, served)
    (served / "modeling.py").write_text("raise SystemExit('code of a hub was run')")
    (served / "pytorch_model.bin").write_bytes(b"a pickle")
    commit = hub.keep("somebody/small")
    said = find(hub, tmp_path, "somebody/small", "")
    assert said["commit"] == said["revision"] == commit
    assert {"config.json", "model.safetensors"} <= set(hub.downloads())
    assert not {"modeling.py", "pytorch_model.bin"} & set(hub.downloads())
    assert said["sha256"] == describe_model(str(folder), "", Folders(tmp_path, tmp_path))["sha256"]
    (served / "README.md").write_text("The branch has moved.")
    assert find(hub, tmp_path, "somebody/small", "")["commit"] == commit, "what was resolved once stays"
    assert "no such repository" in find(hub, tmp_path, "somebody/none", "")["error"]
    hub.gated.add("somebody/closed")
    assert "page, huggingface.co/somebody/closed, then log in" in find(hub, tmp_path, "somebody/closed", "")["error"]
    hub.stop()
    assert find(hub, tmp_path, "somebody/small", "", HF_HUB_OFFLINE="1") == said
    assert "not in this machine's cache" in find(hub, tmp_path, "somebody/other", "", HF_HUB_OFFLINE="1")["error"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (401, "GatedRepo", "Access is restricted."),
            "is gated. Ask for access on its page, huggingface.co/some/model",
        ),
        ((403, "GatedRepo", "You are not on the list."), "then log in with `hf auth login` or set HF_TOKEN"),
        ((403, "", "Enable gated repositories in your token."), "refuses it to this account (403 Forbidden: Enable"),
        (
            (401, "", "Invalid credentials in Authorization header"),
            "log in again with `hf auth login`, or set HF_TOKEN",
        ),
    ],
)
def test_whoever_may_not_have_a_model_is_told_how_to_get_it(
    answer: tuple[int, str, str], said: str, hub: LoopbackHub, tmp_path: Path
) -> None:
    """The Hub tells everybody what a gated model consists of, and refuses its files."""
    put_model(hub, "config.json", "model.safetensors")
    hub.closed["some/model"] = answer
    assert said in find(hub, tmp_path, "some/model", "")["error"]


def test_a_models_weights_are_downloaded_once(hub: LoopbackHub, tmp_path: Path) -> None:
    """Some repositories have them a second time, in their makers' own layout."""
    put_model(hub, "config.json", "consolidated.safetensors", "model.safetensors")
    assert set(find(hub, tmp_path, "some/model", "")["sha256"]) == {"model.safetensors"}
    assert "consolidated.safetensors" not in hub.downloads()


def put_model(hub: LoopbackHub, *files: str) -> None:
    hub.branch("some/model").mkdir(parents=True)
    for file in files:
        (hub.branch("some/model") / file).write_text("{}")


def test_a_model_of_the_hub_without_safetensors_is_refused(folder: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(folder, hub.branch("somebody/pickled"))
    pickle_weights(hub.branch("somebody/pickled"))
    assert "no weights in safetensors" in find(hub, tmp_path, "somebody/pickled", "")["error"]
    assert not hub.downloads()


def test_folders_and_built_in_models_need_no_pin(folders: Folders) -> None:
    assert pin_model("./here", "", folders) == pin_model("builtin:bert-nano", "", folders) == {}
    assert pin_model("somebody/small", "a" * 40, folders) == {}


# Built-in models


@pytest.mark.parametrize("name", builtin.NANOS)
def test_a_built_in_model_is_made_once_and_learns(name: str, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are made, but on one small package."""
    monkeypatch.setattr(corpus, "PACKAGES", {"fsspec": "fsspec"})
    monkeypatch.setattr(builtin, "HELD_OUT", 100)
    path = find_model(f"builtin:{name}", "", folders).path
    about = describe_model(f"builtin:{name}", "", folders)
    assert about["corpus"].keys() == {"fsspec"}
    assert about["paragraphs"] > 200
    assert about["held_out_loss"] < about["loss_of_guessing"] - 0.1
    made = (path / "model.safetensors").stat().st_mtime_ns
    assert find_model(f"builtin:{name}", "", folders).path == path
    assert (path / "model.safetensors").stat().st_mtime_ns == made
    model = LanguageModel(path, CPU)
    assert model.is_packed
    assert model.limit(1000) == builtin.NANOS[name].num_tokens
    assert (
        model.tokenizer.decode(encode(model.tokenizer, ["a file system"], 99)[0]).strip("[CLSEP] ") == "a file system"
    )
    monkeypatch.setattr(corpus, "PACKAGES", {"filelock": "filelock"})
    assert corpus.fingerprint() not in str(path)


def test_the_corpus_is_running_text_of_packages_that_no_task_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from peekbench_docstrings.recipes import RECIPES

    assert not set(corpus.PACKAGES.values()) & {recipe.package for recipe in RECIPES}
    monkeypatch.setattr(corpus, "PACKAGES", {"huggingface_hub": "huggingface_hub"})
    found = corpus.paragraphs()
    assert len(found) > 500
    assert len(set(found)) == len(found)
    assert all(len(text.split()) >= corpus.MIN_WORDS and "\n" not in text and ">>>" not in text for text in found)
