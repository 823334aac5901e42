"""The engine under methods on language models: layout, attention, dropout, training, memory, where models are from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loopback_hub import LoopbackHub
from small_models import KINDS, PACKED, SENTENCES, save_model
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from peekbench import DataError, Folders, PeekbenchError, SpecError
from peekbench_lm import builtin, corpus
from peekbench_lm.devices import choose_device, is_out_of_memory, reproducibly
from peekbench_lm.folder import describe_model, find_model, pin_model
from peekbench_lm.head import summed_loss
from peekbench_lm.layout import GROUP_COST, Step, group_lengths
from peekbench_lm.model import LanguageModel, borrow
from peekbench_lm.names import Kind
from peekbench_lm.pretraining import NO_TARGET, mask, mean_loss, pretrain
from peekbench_lm.situation import computing
from peekbench_lm.tokens import encode
from peekbench_lm.training import Batch, Recipe, train

CPU = torch.device("cpu")
torch.set_num_threads(1)  # models this small are slower with more
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)


@pytest.fixture(scope="module", params=sorted(KINDS))
def any_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel(save_model(request.param, tmp_path_factory.mktemp(request.param)), CPU)


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def model(folder: Path) -> LanguageModel:
    return LanguageModel(folder, CPU)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path, tmp_path / "cache")


def some_texts(model: LanguageModel, number: int = 24, seed: int = 0) -> list[list[int]]:
    """Token ids of sentences, one to three to a text."""
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(SENTENCES, size=generator.integers(1, 4))) for _ in range(number)]
    return encode(model.tokenizer, texts, model.limit(60))


def weights(model: LanguageModel) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.network.named_parameters()}


def farthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


# Layout


def test_groups_cost_as_little_as_any_cut_into_neighbours() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        lengths = sorted(generator.integers(1, 300, size=8).tolist())
        groups = group_lengths(lengths)
        assert [group.first for group in groups] == [0, *(group.end for group in groups[:-1])]
        assert groups[-1].end == len(lengths)
        assert all(group.width == lengths[group.end - 1] for group in groups)
        cost = sum(group.num_cells + GROUP_COST for group in groups)
        for cuts in product((False, True), repeat=7):
            ends = [place for place, cut in enumerate(cuts, start=1) if cut] + [8]
            starts = [0, *ends[:-1]]
            other = sum(
                (end - start) * lengths[end - 1] ** 2 + GROUP_COST for start, end in zip(starts, ends, strict=True)
            )
            assert cost <= other


def test_parts_of_a_step_hold_each_token_once() -> None:
    texts = [[row] * length for row, length in enumerate((7, 2, 5, 5, 1, 9, 3))]
    step = Step(texts)
    assert step.num_tokens == 32
    for size in (1, 2, 3, 7):
        parts = step.parts(size, CPU)
        assert torch.cat([part.ids for part in parts]).tolist() == [token for row in step.order for token in texts[row]]
        for part in parts:
            assert [end - start for start, end in part.spans] == part.lengths
            assert part.positions.tolist() == [place for length in part.lengths for place in range(length)]
            assert sum(block.num_texts for block in part.blocks) == len(part.lengths) <= size


# Texts end to end


def test_packed_models_compute_what_they_compute_text_by_text(any_model: LanguageModel) -> None:
    name = any_model.network.config.model_type
    assert any_model.is_packed == (name in PACKED)
    texts = some_texts(any_model, 9)
    (part,) = Step(texts).parts(9, CPU)
    any_model.network.eval()
    with torch.no_grad():
        with computing(part, 0, "fp32"):
            hidden = any_model.hidden(part)
        with computing(part, 0, "fp32"):
            logits = any_model.logits(part, torch.arange(0, len(hidden), 3))
        plain = type(any_model.network).from_pretrained(any_model.folder).eval()
        alone = [plain(part.ids[None, start:end], output_hidden_states=True) for start, end in part.spans]
    expected = torch.cat([output.logits[0] for output in alone])
    torch.testing.assert_close(logits, expected[::3], atol=2e-5, rtol=1e-4)
    assert hidden.shape == (part.step.num_tokens, any_model.hidden_size)


def test_training_does_not_depend_on_how_many_texts_fit_into_memory(model: LanguageModel) -> None:
    texts = some_texts(model)
    outcomes = []
    for limit in (None, 5, 1):
        model.restore()
        model.micro_batch.limit = limit
        trained = pretrain(model, texts, RECIPE, 0.15, seed=3)
        outcomes.append((trained.losses, weights(model)))
    (losses, whole), *others = outcomes
    for other_losses, other in others:
        assert other_losses == pytest.approx(losses, rel=1e-5)
        assert farthest(whole, other) < 2e-5
    model.restore()
    model.micro_batch.limit = None
    assert pretrain(model, texts, RECIPE, 0.15, seed=4).losses != pytest.approx(losses, rel=1e-5)


def test_dropout_drops_its_share_and_keeps_the_mean(tmp_path: Path) -> None:
    model = LanguageModel(save_model("bert", tmp_path, dropout=0.3), CPU)
    (part,) = Step([[5] * 60] * 40).parts(40, CPU)
    dropout = model.network.bert.embeddings.dropout.train()
    with computing(part, 1, "fp32"):
        first, second = (dropout(torch.ones(1, 2400, 32)) for _ in range(2))
    with computing(part, 1, "fp32"):
        again = dropout(torch.ones(1, 2400, 32))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert first.mean().item() == pytest.approx(1, abs=0.02)
    assert torch.equal(dropout.eval()(torch.ones(1, 3, 32)), torch.ones(1, 3, 32))


# Objectives


def test_a_step_is_what_transformers_would_make_of_it(folder: Path) -> None:
    """Same gradient as a padded batch with labels has; the model is saved without dropout here."""
    model = LanguageModel(
        save_model("bert" if "bert" in folder.name else "gpt2", folder.parent / "still", dropout=0), CPU
    )
    texts = some_texts(model, 8)
    recipe = Recipe(1, 8, 1e-2, "constant", 0.0, 0.0)
    trained = pretrain(model, texts, recipe, 0.5, seed=5)
    ours = weights(model)
    plain = type(model.network).from_pretrained(model.folder)
    generator = np.random.default_rng(derive_epoch_seed(5))
    order = generator.permutation(len(texts))
    width = max(map(len, texts))
    ids, targets = np.zeros((8, width), dtype=np.int64), np.full((8, width), NO_TARGET)
    real = np.zeros((8, width), dtype=np.int64)
    for row, position in enumerate(order):
        text = np.array(texts[position])
        inputs, wanted = (
            mask(text, model.tokenizer, 0.5, generator) if model.kind == "masked" else (text, text)
        )  # transformers shifts causal labels itself
        ids[row, : len(text)], targets[row, : len(text)], real[row, : len(text)] = inputs, wanted, 1
    output = plain(torch.tensor(ids), attention_mask=torch.tensor(real), labels=torch.tensor(targets))
    assert trained.losses == [pytest.approx(output.loss.item(), rel=1e-5)]
    output.loss.backward()
    torch.optim.AdamW(plain.parameters(), lr=1e-2, weight_decay=0.0).step()
    moved = {name: weight.detach() for name, weight in plain.named_parameters()}
    gradients = {name: weight.grad for name, weight in plain.named_parameters()}
    for name, weight in moved.items():
        clear = gradients[name].abs() > 1e-5  # Adam's first step is the gradient's sign
        torch.testing.assert_close(ours[name][clear], weight[clear], atol=1e-4, rtol=0)


def derive_epoch_seed(seed: int) -> int:
    from peekbench_lm.training import derive

    return derive(seed, "epoch", 0)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_loss_at_the_head_has_the_gradient_of_cross_entropy(precision: Any) -> None:
    torch.manual_seed(3)
    head, hidden, targets = nn.Linear(16, 300), torch.randn(150, 16, requires_grad=True), torch.randint(300, (150,))
    wanted = [hidden, head.weight, head.bias]
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        plain = cross_entropy(head(hidden).float(), targets, reduction="sum")
        ours = summed_loss(head, hidden, targets)
    close = {"fp32": 1e-5, "bf16": 2e-2}[precision]
    assert ours.item() == pytest.approx(plain.item(), rel=close)
    for one, other in zip(*(torch.autograd.grad(loss / 7, wanted) for loss in (ours, plain)), strict=True):
        assert (one - other).norm() < close * other.norm()


def test_a_model_that_scales_its_scores_is_trained_on_the_scaled_ones(tmp_path: Path, any_model: LanguageModel) -> None:
    assert any_model._has_linear_head
    builtin.train_tokenizer("causal", SENTENCES, 400).save_pretrained(tmp_path)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    config = AutoConfig.for_model("granite", vocab_size=400, logits_scaling=8.0, **sizes)
    loader: Any = AutoModelForCausalLM
    loader.from_config(config).save_pretrained(tmp_path)
    model = LanguageModel(tmp_path, CPU)
    assert not model._has_linear_head
    (part,) = Step(some_texts(model, 3)).parts(3, CPU)
    places = torch.arange(1, 9)
    with torch.no_grad(), computing(part, 0, "fp32"):
        loss, scores = model.loss(part, places, part.ids[places]), model.logits(part, places)
    assert loss.item() == pytest.approx(cross_entropy(scores, part.ids[places], reduction="sum").item())


def test_masks_hit_their_share_and_no_special_token(tmp_path: Path) -> None:
    model = LanguageModel(save_model("bert", tmp_path), CPU)
    ids = np.array([model.tokenizer.cls_token_id, *[50] * 40_000, model.tokenizer.sep_token_id])
    inputs, targets = mask(ids, model.tokenizer, 0.15, np.random.default_rng(0))
    chosen = targets != NO_TARGET
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert not chosen[[0, -1]].any()
    assert (inputs[chosen] == model.tokenizer.mask_token_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (inputs[chosen] == 50).mean() == pytest.approx(0.1, abs=0.02)
    assert (inputs[~chosen] == ids[~chosen]).all()
    assert (targets[chosen] == 50).all()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_pretraining_learns(model: LanguageModel, precision: Any) -> None:
    """bf16 included: weights that are rounded once, and never again, would not learn."""
    texts = some_texts(model, 200)
    model.precision = precision
    before = mean_loss(model, texts, 0.15, seed=0)
    trained = pretrain(model, texts, Recipe(6, 16, 5e-3, "linear", 0.0, 1.0, warmup=0.1), 0.15, seed=0)
    assert trained.num_steps == 6 * 13
    assert trained.num_tokens == 6 * sum(map(len, texts))
    assert trained.losses[-1] < 0.7 * trained.losses[0]
    assert mean_loss(model, texts, 0.15, seed=0) < 0.6 * before


def test_texts_without_anything_to_guess_do_no_harm(model: LanguageModel) -> None:
    trained = pretrain(model, [[7]] * 3, Recipe(1, 2, 1e-3, "linear", 0.0, 1.0), 1e-9, seed=0)
    assert trained.losses == [0.0]
    assert all(torch.isfinite(weight).all() for weight in weights(model).values())


def test_the_learning_rate_warms_up_and_falls() -> None:
    recipe = Recipe(1, 1, 2.0, "linear", 0.0, 0.0, warmup=0.25)
    assert [recipe.rate(progress) for progress in (0, 0.125, 0.25, 0.5, 1)] == [0, 1.0, 1.5, 1.0, 0]
    assert Recipe(1, 1, 2.0, "constant", 0.0, 0.0).rate(0.9) == 2.0


# Memory


def test_a_step_that_does_not_fit_is_done_in_smaller_parts(model: LanguageModel) -> None:
    texts = some_texts(model, 16)
    pretrain(model, texts, RECIPE, 0.15, seed=1)
    roomy = weights(model)
    model.restore()

    def refuse(module: Any, arguments: Any, inputs: Any) -> None:
        if inputs["position_ids"].numel() > 60:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with model.body.register_forward_pre_hook(refuse, with_kwargs=True):
        pretrain(model, texts, RECIPE, 0.15, seed=1)
    assert model.micro_batch.limit in (1, 2, 4)
    assert farthest(roomy, weights(model)) < 2e-5


def test_a_text_that_never_fits_is_an_error_with_a_remedy(model: LanguageModel) -> None:
    def refuse(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    with (
        model.body.register_forward_pre_hook(refuse),
        pytest.raises(PeekbenchError, match="a single text does not fit into memory; choose a smaller model"),
    ):
        pretrain(model, some_texts(model, 4), RECIPE, 0.15, seed=1)


def test_what_torch_says_where_memory_runs_out_is_known() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2) @ torch.ones(3)
    assert not is_out_of_memory(caught.value)


def test_other_faults_in_a_step_are_not_taken_for_a_lack_of_memory(model: LanguageModel) -> None:
    def fail(part: Any) -> torch.Tensor:
        raise RuntimeError("a fault")

    batch = Batch(Step([[1, 2], [3]]), 2, fail)
    with pytest.raises(RuntimeError, match="a fault"):
        train(model, [model.network], [[batch]], 1, RECIPE, seed=0)
    assert model.micro_batch.limit is None


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


@pytest.mark.parametrize("name", ["opt", "xlnet", "convbert", "modernbert"])
def test_models_of_other_builds_are_computed_right_or_refused(name: str, tmp_path: Path) -> None:
    """OPT passes its body by, XLNet sees the tokens behind, ConvBERT padding; ModernBERT looks at neighbours only."""
    kind: Kind = "masked" if name in ("convbert", "modernbert") else "causal"
    tokenizer = builtin.train_tokenizer(kind, SENTENCES, 400)
    tokenizer.save_pretrained(tmp_path)
    sizes = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "d_model": 32,
        "n_layer": 2, "n_head": 4, "d_inner": 64, "ffn_dim": 64, "word_embed_proj_dim": 32, "embedding_size": 32,
        "local_attention": 8, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
    }  # fmt: skip
    if name == "xlnet":
        del sizes["max_position_embeddings"]
    config = AutoConfig.for_model(name, vocab_size=len(tokenizer), **sizes)
    loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    loader.from_config(config).save_pretrained(tmp_path)
    try:
        model = LanguageModel(tmp_path, CPU)
    except DataError as error:
        assert name in ("opt", "xlnet", "convbert"), error
        return
    assert name == "modernbert"
    assert not model.is_packed
    texts = some_texts(model, 9)
    (part,) = Step(texts).parts(9, CPU)
    model.network.eval()
    with torch.no_grad(), computing(part, 0, "fp32"):
        hidden = model.hidden(part)
        alone = [model.body(part.ids[None, start:end]).last_hidden_state[0] for start, end in part.spans]
    torch.testing.assert_close(hidden, torch.cat(alone), atol=1e-4, rtol=1e-3)


def test_a_model_that_is_causal_by_name_only_is_refused(tmp_path: Path) -> None:
    folder = save_model("bert", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertLMHeadModel"]}))
    with pytest.raises(DataError, match="it sees the tokens behind"):
        LanguageModel(folder, CPU)
