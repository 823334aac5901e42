"""Layout of packed texts, and equality of packed and separate computation for many architectures."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import needs_torch  # noqa: F401
import numpy as np
import pytest
import torch
from small_models import PACKED, SENTENCES, max_difference, save_model, some_texts, weights
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from peekbench import DataError
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Step, group_lengths
from peekbench_lm.nano import train_tokenizer
from peekbench_lm.options import Kind, Recipe
from peekbench_lm.pretraining import pretrain

CPU = torch.device("cpu")
torch.set_num_threads(1)  # more threads slow down models of this size
RECIPE = Recipe(2, 8, 1e-3, "linear", 0.01, 1.0)
GROUP_COST = 128 * 128


# Layout


def test_groups_have_the_minimal_cost_of_all_partitions() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        lengths = sorted(generator.integers(1, 300, size=8).tolist())
        groups = group_lengths(lengths, GROUP_COST)
        assert [group.first for group in groups] == [0, *(group.end for group in groups[:-1])]
        assert groups[-1].end == len(lengths)
        assert all(group.width == lengths[group.end - 1] for group in groups)
        cost = sum(group.num_cells + GROUP_COST for group in groups)
        for cuts in product((False, True), repeat=7):
            ends = [end for end, cut in enumerate(cuts, start=1) if cut] + [8]
            starts = [0, *ends[:-1]]
            alternative = sum(
                (end - start) * lengths[end - 1] ** 2 + GROUP_COST for start, end in zip(starts, ends, strict=True)
            )
            assert cost <= alternative


def test_a_gpu_computes_texts_of_common_lengths_in_one_group() -> None:
    step = Step([[0] * length for length in (5, 8, 30, 60, 250)])
    (group,) = step.groups(torch.device("cuda"))
    assert (group.first, group.end, group.width) == (0, 5, 250)
    assert len(step.groups(CPU)) > 1


def test_each_token_of_a_step_is_in_one_part() -> None:
    texts = [[row] * length for row, length in enumerate((7, 2, 5, 5, 1, 9, 3))]
    step = Step(texts)
    assert step.num_tokens == 32
    for size in (1, 2, 3, 7):
        parts = step.parts(size, CPU)
        assert torch.cat([part.ids for part in parts]).tolist() == [token for row in step.order for token in texts[row]]
        for part in parts:
            assert [end - start for start, end in part.spans] == part.lengths
            assert part.positions.tolist() == [position for length in part.lengths for position in range(length)]
            assert sum(block.num_texts for block in part.blocks) == len(part.lengths) <= size


# Packed texts


def test_packed_texts_give_the_same_results_as_separate_texts(any_model: LanguageModel) -> None:
    name = any_model.network.config.model_type
    assert any_model.is_packed == (name in PACKED)
    texts = some_texts(any_model, 9)
    (part,) = Step(texts).parts(9, CPU)
    any_model.network.eval()
    with torch.no_grad():
        with forward_context(part, 0, "fp32"):
            hidden = any_model.hidden(part)
        with forward_context(part, 0, "fp32"):
            logits = any_model.logits(part, torch.arange(0, len(hidden), 3))
        plain = type(any_model.network).from_pretrained(any_model.folder).eval()
        outputs = [plain(part.ids[None, start:end], output_hidden_states=True) for start, end in part.spans]
    expected = torch.cat([output.logits[0] for output in outputs])
    torch.testing.assert_close(logits, expected[::3], atol=2e-5, rtol=1e-4)
    assert hidden.shape == (part.step.num_tokens, any_model.hidden_size)


@pytest.mark.slow
def test_training_does_not_depend_on_the_micro_batch_size(model: LanguageModel) -> None:
    texts = some_texts(model)
    outcomes = []
    for limit in (None, 5, 1):
        model.restore()
        model.micro_batch.limit = limit
        result = pretrain(model, texts, RECIPE, 0.15, seed=3)
        outcomes.append((result.losses, weights(model)))
    (losses, expected), *others = outcomes
    for other_losses, actual in others:
        assert other_losses == pytest.approx(losses, rel=1e-5)
        assert max_difference(actual, expected) < 2e-5
    model.restore()
    model.micro_batch.limit = None
    assert pretrain(model, texts, RECIPE, 0.15, seed=4).losses != pytest.approx(losses, rel=1e-5)


def test_dropout_drops_the_requested_fraction_and_preserves_the_mean(tmp_path: Path) -> None:
    model = LanguageModel(save_model("bert", tmp_path, dropout=0.3), CPU)
    (part,) = Step([[5] * 60] * 40).parts(40, CPU)
    dropout = model.network.bert.embeddings.dropout.train()
    with forward_context(part, 1, "fp32"):
        first, second = (dropout(torch.ones(1, 2400, 32)) for _ in range(2))
    with forward_context(part, 1, "fp32"):
        again = dropout(torch.ones(1, 2400, 32))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert first.mean().item() == pytest.approx(1, abs=0.02)
    assert torch.equal(dropout.eval()(torch.ones(1, 3, 32)), torch.ones(1, 3, 32))


# Other architectures


@pytest.mark.parametrize("name", ["opt", "xlnet", "convbert", "modernbert"])
def test_other_architectures_give_correct_results_or_an_error(name: str, tmp_path: Path) -> None:
    """OPT bypasses its body, XLNet attends to later tokens, ConvBERT to padding; ModernBERT has local attention."""
    kind: Kind = "masked" if name in ("convbert", "modernbert") else "causal"
    tokenizer = train_tokenizer(kind, SENTENCES, 400)
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
    with torch.no_grad(), forward_context(part, 0, "fp32"):
        hidden = model.hidden(part)
        separate = [model.body(part.ids[None, start:end]).last_hidden_state[0] for start, end in part.spans]
    torch.testing.assert_close(hidden, torch.cat(separate), atol=1e-4, rtol=1e-3)


def test_a_masked_model_declared_as_causal_is_an_error(tmp_path: Path) -> None:
    folder = save_model("bert", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertLMHeadModel"]}))
    with pytest.raises(DataError, match="its tokens attend to later"):
        LanguageModel(folder, CPU)
