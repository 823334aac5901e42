"""Models in GGUF files, the format of llama.cpp, converted to the format of transformers."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
import transformers
from gguf import GGUFReader
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from peekbench import DataError
from peekbench_lm.loading import check_finite, quiet_transformers

STAGES = ("reading the vocabulary", "reading the weights", "writing the weights")
"""What a conversion does, in this order; the first two take most of the time."""
BYTES_PER_QUANTIZED_WEIGHT = 1.5
"""A file with fewer bytes per weight has quantized weights, whose error is greater than that of rounding to bf16."""
READING_ERRORS = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, NotImplementedError, MemoryError,
    struct.error,
)  # fmt: skip
"""Errors of transformers and gguf if a file is damaged, or has a model or a data type that they do not know."""


class StageDisplay:
    """Shows on the standard error which stage goes on: a bar on a terminal, lines elsewhere.

    Parameters
    ----------
    model
        Name of the model in the spec.
    num_stages
        Number of stages.
    """

    def __init__(self, model: str, num_stages: int) -> None:
        self._model = model
        # The stream of now, because a conversion hides what libraries write to the standard error.
        self._console = Console(file=sys.stderr, highlight=False, markup=False, soft_wrap=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), console=self._console,
            transient=True, redirect_stdout=False, redirect_stderr=False, disable=not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task(model, total=num_stages)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the stages of the block."""
        with self._bar:
            yield

    def note(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        self._console.print(f"{self._model}: {line}")

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show the title of a stage, and count the stage after the block."""
        self._bar.update(self._task, description=f"{self._model}: {title}")
        if not self._console.is_terminal:
            self.note(title)
        yield
        self._bar.advance(self._task)


def convert_file(model: str, file: Path, folder: Path) -> dict[str, Any]:
    """Convert a model and show the progress.

    Parameters
    ----------
    model
        Name of the model in the spec.
    file
        GGUF file.
    folder
        Empty folder for the model, in the format of transformers.

    Returns
    -------
    dict
        Description of the model: versions and data type of the weights.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    display = StageDisplay(model, len(STAGES))
    with display.shown():
        return convert(model, file, folder, display)


def convert(model: str, file: Path, folder: Path, display: StageDisplay) -> dict[str, Any]:
    """Convert a model as `convert_file` does, with a display of more stages."""
    source = folder / "source"
    source.mkdir()
    link = source / "model.gguf"
    link.symlink_to(file.resolve())  # alone in a folder, because transformers also reads files beside a GGUF file
    tokenizer_class: Any = AutoTokenizer
    model_class: Any = AutoModelForCausalLM
    common: dict[str, Any] = {"gguf_file": link.name, "local_files_only": True, "trust_remote_code": False}
    try:
        with quiet_transformers(), redirect_stderr(io.StringIO()):  # bars of single stages
            with display.stage(STAGES[0]):
                tokenizer_class.from_pretrained(source, **common).save_pretrained(folder)
            with display.stage(STAGES[1]):
                network, report = model_class.from_pretrained(
                    source,
                    dtype=torch.float32,
                    quantization_config=GgufConfig(dequantize=True),
                    output_loading_info=True,
                    **common,
                )
    except READING_ERRORS as error:
        if _is_damaged(file):
            raise DataError(
                f"model {model}: {file} is damaged or incomplete, because it lacks what its header describes; copy or "
                "download it again"
            ) from error
        raise DataError(
            f"model {model}: transformers {transformers.__version__} cannot convert {file}: "
            f"{str(error) or repr(error)}; give a folder with the weights in safetensors from which this file was made"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"model {model}: {file} lacks {len(missing)} of the weights, such as {missing[0]}; give a file with a "
            "whole model"
        )
    check_finite(network, file)
    num_weights = sum(weight.numel() for weight in network.parameters())
    dtype = torch.float32
    if file.stat().st_size < BYTES_PER_QUANTIZED_WEIGHT * num_weights:
        dtype = torch.bfloat16
    with quiet_transformers(), display.stage(STAGES[2]):
        _save(network, dtype, folder)
    link.unlink()
    source.rmdir()
    return {"converted_with": f"transformers {transformers.__version__}", "weights": str(dtype).removeprefix("torch.")}


def _is_damaged(file: Path) -> bool:
    """Return whether the reader of llama.cpp cannot read the header of a file, or finds less data than it describes."""
    try:
        GGUFReader(file)
    except READING_ERRORS:
        return True
    return False


def _save(network: Any, dtype: torch.dtype, folder: Path) -> None:
    """Save a network as if it had never been quantized: transformers refuses to save one that was read from GGUF."""
    config = network.config
    make_plain: Any = AutoModelForCausalLM.from_config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = make_plain(config, dtype=dtype)
    plain.load_state_dict(network.state_dict())
    plain.save_pretrained(folder)
