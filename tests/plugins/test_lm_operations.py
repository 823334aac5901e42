"""Tests that operations of matrix products are counted, in training and in inference mode."""

from __future__ import annotations

import torch

from peekbench_lm.operations import count


def test_operations_of_forward_and_backward_passes() -> None:
    layer = torch.nn.Linear(30, 40)
    texts = torch.ones(7, 30, requires_grad=True)
    product = 2 * 7 * 30 * 40
    with count() as operations:
        layer(texts).sum().backward()
        assert operations() == 3 * product  # backward: the gradients of the weights and of the input
        with torch.inference_mode():
            layer(texts)
        assert operations() == 4 * product
        queries = torch.ones(1, 2, 5, 8, requires_grad=True)
        torch.nn.functional.scaled_dot_product_attention(queries, queries, queries)
    assert operations() == 4 * product + 2 * (2 * 2 * 5 * 5 * 8)
    layer(texts)
    assert operations() == 4 * product + 2 * (2 * 2 * 5 * 5 * 8)  # only in the block
