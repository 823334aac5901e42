"""The files of an encoder, and the callables that entries register: check, prefetch, count tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peekbench import DataError, Folders
from peekbench_encoders.options import Encoder
from peekbench_lm import provision
from peekbench_lm.builtin_models import BUILTIN_PREFIX, find_builtin
from peekbench_lm.defects import check_weights
from peekbench_lm.extras import check_extra
from peekbench_lm.model_files import describe_model, find_model, is_path
from peekbench_lm.tokenizer import load_tokenizer

MODULES_FILE = "modules.json"
LIBRARY_MODULE = re.compile(
    r"sentence_transformers\.(?:models|base\.modules|sentence_transformer\.modules)(?:\.[a-z_]+)*\.([A-Za-z]+)"
)
WEIGHTS, OTHER_WEIGHTS = "model.safetensors", "pytorch_model.bin"
SUPPORTED_MODULES = ("Transformer", "Pooling", "WeightedLayerPooling", "Dense", "LayerNorm", "Dropout", "Normalize")


def check_modules(folder: Path) -> None:
    """Check that a model consists of modules of sentence-transformers, so that loading it runs no code of the model.

    Without ``modules.json``, sentence-transformers averages the last hidden states.
    """
    file = folder / MODULES_FILE
    if not file.is_file():
        return
    try:
        modules = {str(module["path"]): str(module["type"]) for module in json.loads(file.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise DataError(
            f"{file}: not a list of modules ({error!r}); download the model again, or save it again"
        ) from error
    for path, name in modules.items():
        match = LIBRARY_MODULE.fullmatch(name)
        if match is None or match[1] not in SUPPORTED_MODULES:
            raise DataError(
                f"{file}: the model has the module {name!r}, and peekbench runs no code of models; choose a model that "
                f"consists of these modules of sentence-transformers: {', '.join(SUPPORTED_MODULES)}"
            )
        if (folder / path / OTHER_WEIGHTS).is_file() and not (folder / path / WEIGHTS).is_file():
            raise DataError(
                f"{folder / path / OTHER_WEIGHTS}: peekbench loads only weights in safetensors, because other formats "
                "may contain code; choose another model, or save it again with sentence-transformers"
            )


def prefetch(*, options: Encoder, folders: Folders) -> Mapping[str, Any]:
    """Download or unpack the encoder if it is not on this machine yet, and describe it."""
    check(options=options, folders=folders)
    folder = find_model(options.model, options.revision, folders).path
    check_modules(folder)
    check_weights(folder)
    load_tokenizer(folder)
    description = describe_model(options.model, options.revision, folders)
    return description | provision.describe_precision(options, getattr(options, "training", None))


def check(*, options: Encoder, folders: Folders) -> None:
    """Check, without a download, that an encoder that is built in or in a folder exists and has no code of its own.

    A folder must have complete weights in safetensors.
    """
    check_extra("embeddings", "sentence encoders")
    if options.model.startswith(BUILTIN_PREFIX):
        find_builtin(options.model.removeprefix(BUILTIN_PREFIX))
    elif is_path(options.model):
        folder = find_model(options.model, "", folders).path
        check_modules(folder)
        check_weights(folder)
