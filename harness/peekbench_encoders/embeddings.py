"""A file of embeddings, which all workers of all runs with the same encoder share."""

from __future__ import annotations

import hashlib
import json
import platform
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np

from peekbench import DataError, Folders, Inputs
from peekbench.records import FloatArray
from peekbench_encoders.options import Encoder
from peekbench_lm.model_files import describe_model, find_model
from peekbench_lm.options import ModelFolder

LOCK_TIMEOUT = 60.0  # seconds to wait for another process that writes
MAX_VARIABLES = 500  # in one statement; every SQLite accepts 999


class VectorFile:
    """Embeddings by text, in an SQLite file that may be missing, damaged or not writable at any time.

    Parameters
    ----------
    path
        The file. It is created with the first embedding.

    Notes
    -----
    A transaction writes an embedding completely or not at all, so a process that is killed leaves valid embeddings.
    Nothing is kept open between calls.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, texts: Iterable[bytes]) -> dict[bytes, FloatArray]:
        """Return the embeddings that the file has.

        Parameters
        ----------
        texts
            Hashes of texts.

        Returns
        -------
        dict
            Embedding by hash: (n_features,), float32.
        """
        wanted = list(texts)
        found: dict[bytes, FloatArray] = {}
        if not self.path.is_file():
            return found
        with self._tolerant(), self._connect("ro") as connection:
            for start in range(0, len(wanted), MAX_VARIABLES):
                part = wanted[start : start + MAX_VARIABLES]
                marks = ",".join("?" * len(part))
                query = f"SELECT text, vector FROM embedding WHERE text IN ({marks})"  # noqa: S608 - only marks
                for text, vector in connection.execute(query, part):
                    found[text] = np.frombuffer(vector, dtype=np.float32)
        return found

    def write(self, vectors: Mapping[bytes, FloatArray]) -> None:
        """Add embeddings, or warn if the file is not writable or the disk is full.

        Parameters
        ----------
        vectors
            Embedding by hash of its text: (n_features,), float32.
        """
        rows = [(text, vector.tobytes()) for text, vector in vectors.items()]
        with self._tolerant():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connect("rwc") as connection, connection:
                connection.execute("CREATE TABLE IF NOT EXISTS embedding (text BLOB PRIMARY KEY, vector BLOB)")
                connection.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)

    @contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT)) as connection:
            yield connection

    @contextmanager
    def _tolerant(self) -> Iterator[None]:
        """Go on without the file if it cannot be used, and delete it if it is damaged."""
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:  # locked, not writable, no space, or no table yet
            if "no such table" not in str(error):
                _warn(self.path.parent, str(error))
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self.path.unlink()


@cache  # one warning of each process
def _warn(folder: Path, reason: str) -> None:
    warnings.warn(
        f"{folder}: embeddings are not read or saved ({reason}), and are computed again in each process; make the "
        "folder writable, or free disk space",
        stacklevel=2,
    )


def hash_texts(texts: Sequence[str]) -> list[bytes]:
    """Return a hash of each text."""
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]


CACHE_FOLDER = "embeddings"  # in peekbench's cache
LIBRARIES = ("sentence-transformers", "transformers", "tokenizers", "torch")
CHUNK_SIZE = 64  # texts that are computed before they are saved
MEMORY_LIMIT = 64 * 2**20  # bytes of embeddings of one encoder that a process keeps
_memory: dict[str, dict[bytes, FloatArray]] = {}


class Embedder:
    """Embeddings of texts by one encoder.

    An embedding depends on nothing but its text and the encoder: each text is encoded alone, and the cache belongs to
    one model, one version of each library and one model of processor or GPU.

    Parameters
    ----------
    options
        Options of the encoder.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, is unavailable or has code of its own.
    SpecError
        If this machine has no such device.
    """

    def __init__(self, options: Encoder, folders: Folders) -> None:
        self._options = options
        self._folder = find_model(options.model, options.revision, folders)
        self._device = _device(options)
        key = _key(self._folder, self._device, options, folders)
        self._file = VectorFile(folders.cache / CACHE_FOLDER / f"{key}.sqlite")
        self._memory = _memory.setdefault(key, {})

    def __call__(self, inputs: Inputs) -> FloatArray:
        """Return the embeddings of texts: (n, n_features), float64.

        Parameters
        ----------
        inputs
            Texts.

        Raises
        ------
        DataError
            If the inputs are not texts, or the model cannot be loaded.
        """
        inputs = check_texts(inputs)
        hashes = hash_texts(inputs)
        vectors = {text: self._memory[text] for text in hashes if text in self._memory}
        if len(vectors) < len(set(hashes)):
            missing = {text: inputs[row] for row, text in enumerate(hashes) if text not in vectors}
            vectors |= self._read_or_compute(missing)
        return np.stack([vectors[text] for text in hashes]).astype(np.float64)

    def _read_or_compute(self, missing: dict[bytes, str]) -> dict[bytes, FloatArray]:
        """Return embeddings by the hashes of their texts, and keep them in memory and in the cache."""
        vectors = self._file.read(missing)
        left = [text for text in missing if text not in vectors]
        for first in range(0, len(left), CHUNK_SIZE):
            part = left[first : first + CHUNK_SIZE]
            new = dict(zip(part, self._compute([missing[text] for text in part]), strict=True))
            self._file.write(new)
            vectors |= new
        self._remember(vectors)
        return vectors

    def _compute(self, texts: Sequence[str]) -> FloatArray:
        # Imports torch and sentence-transformers, which cached embeddings do not need.
        from peekbench_encoders.encoder import encode_texts, load_encoder  # noqa: PLC0415

        model = load_encoder(self._folder, self._options.context_length, self._device)
        return encode_texts(model, texts, self._options.prompt, self._options.threads)

    def _remember(self, vectors: dict[bytes, FloatArray]) -> None:
        self._memory.update(vectors)
        size = next(iter(vectors.values())).nbytes
        for text in list(self._memory)[: max(0, len(self._memory) - MEMORY_LIMIT // size)]:
            del self._memory[text]  # the oldest ones


def check_texts(inputs: Inputs) -> Sequence[str]:
    """Return inputs that are texts.

    Parameters
    ----------
    inputs
        Inputs of a task.

    Raises
    ------
    DataError
        If they are arrays.
    """
    if isinstance(inputs, np.ndarray):
        raise DataError(
            "a sentence encoder takes texts, and this task's inputs are arrays; use a method of tabular, or one of "
            "transductive without the option encoder"
        )
    return inputs


def unit_length(rows: FloatArray) -> FloatArray:
    """Divide rows by their lengths; a row of zeros stays as it is. (n, n_features) to the same shape."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: FloatArray = rows / np.where(lengths > 0, lengths, 1)
    return scaled


def _device(options: Encoder) -> str:
    """Return the type of the device, without an import of torch if the options name the CPU."""
    if options.device == "cpu":
        return "cpu"
    from peekbench_lm.devices import choose_device  # noqa: PLC0415 - imports torch

    return choose_device(options.device).type


def _device_name(device: str) -> str:
    """Return the device, for a GPU with its model: other models round differently."""
    if device != "cuda":
        return device
    import torch  # noqa: PLC0415 - already imported to find the GPU

    return f"{device} {torch.cuda.get_device_name()}"


@lru_cache(maxsize=32)  # describing a model takes longer than finding it
def _key(folder: ModelFolder, device: str, options: Encoder, folders: Folders) -> str:
    """Return a hash of everything that determines the embedding of a text."""
    parts = {
        "model": describe_model(options.model, options.revision, folders)["sha256"],
        "prompt": options.prompt,
        "context_length": options.context_length,
        "type": "float32",
        "device": _device_name(device),
        "threads": options.threads,
        **_environment(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@lru_cache(maxsize=1)
def _environment() -> dict[str, str]:
    """Return the versions, the code and the processor, on which the last digits depend."""
    code = Path(__file__).with_name("encoder.py").read_bytes()
    return {
        **{library: metadata.version(library) for library in LIBRARIES},
        "code": hashlib.sha256(code).hexdigest(),
        "processor": _processor(),
    }


def _processor() -> str:
    """Return the model of the processor: processors with other instructions round differently."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.is_file() else []
    model = next((line for line in lines if line.startswith("model name")), platform.processor())
    return model + platform.machine()
