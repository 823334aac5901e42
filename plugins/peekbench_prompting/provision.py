"""Preparation before a run: pin, check and download models, check options against them, and count tokens.

This module imports quickly. Its functions check that the optional libraries are installed before they import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peekbench import Folders
from peekbench_lm.extras import check_extra
from peekbench_lm.model_files import find_model
from peekbench_lm.provision import describe_precision
from peekbench_lm.provision import prefetch as prefetch_model
from peekbench_lm.tokenizer import load_tokenizer
from peekbench_prompting.options import Packed, Prompting, check_packing


def prefetch(*, options: Prompting, folders: Folders) -> Mapping[str, Any]:
    """Download or build the model if necessary, and check that the method can use it.

    Packed texts must not be a part of a chat's reply.
    """
    stages = [getattr(options, stage, None) for stage in ("pretraining", "finetuning")]
    if options.weights == "nf4" or any(stage and stage.optimizer == "adamw_8bit" for stage in stages):
        check_extra("qlora", "four-bit weights and eight-bit optimizers", "`weights: fp32` and `optimizer: adamw`")
    description = prefetch_model(options=options, folders=folders)
    if isinstance(options, Packed):
        tokenizer = load_tokenizer(find_model(options.model, options.revision, folders).path)
        check_packing(options.chat_template == "auto" and bool(tokenizer.chat_template), options)
    if options.weights == "nf4":
        description = {**description, **describe_precision(options, options.scoring)}
    return description
