"""Sentence encoders: each text is encoded alone, the cache that all processes share, and checks of model folders."""

from __future__ import annotations

import needs_torch  # noqa: F401
import pytest

pytest.importorskip("sentence_transformers", reason="the extra 'embeddings' is not installed")

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from small_models import SENTENCES

from peekbench import Folders
from peekbench.errors import DataError, PeekbenchError
from peekbench_encoders.embeddings import Embedder, VectorFile, hash_texts
from peekbench_encoders.options import Encoder
from peekbench_encoders.provision import check, check_modules, prefetch
from peekbench_lm import extras


def test_an_embedding_depends_on_its_text_only(make_embedder: Callable[..., Embedder], encoder: Path) -> None:
    """Whatever the batch, the order and the source, embeddings are bitwise those of sentence-transformers for a text.

    The file then has them, each once, and an embedding of another context length or prompt is not taken from it.
    """
    from sentence_transformers import SentenceTransformer

    texts = [*SENTENCES[:40], " ".join(SENTENCES[:9]), SENTENCES[0]]
    library = SentenceTransformer(str(encoder), device="cpu", local_files_only=True)
    expected = np.stack([library.encode(text, show_progress_bar=False) for text in texts])
    assert (make_embedder(device="cpu")(texts) == expected).all()  # computed
    embedder = make_embedder(device="cpu")
    assert (embedder(texts[::-1]) == expected[::-1]).all()  # from the file
    assert (embedder(texts[7:9]) == expected[7:9]).all()  # from memory
    with closing(sqlite3.connect(embedder._file.path)) as connection:
        assert connection.execute("SELECT count(*) FROM embedding").fetchone() == (41,)
    for options in ({"context_length": 12}, {"prompt": "query: "}):
        other = make_embedder(device="cpu", **options)
        assert other._file.path != embedder._file.path
        assert not np.allclose(other(texts[40:41]), expected[40], atol=1e-4)


def test_a_changed_model_has_other_embeddings(
    make_embedder: Callable[..., Embedder], encoder: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(encoder, tmp_path / "other")
    (other / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 32, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    first = make_embedder()(SENTENCES[:2])
    second = Embedder(Encoder(model=str(other)), Folders(spec=tmp_path, cache=tmp_path / "cache"))(SENTENCES[:2])
    assert not np.allclose(first, second, atol=1e-3)


def test_damaged_files_are_not_used(tmp_path: Path) -> None:
    texts = hash_texts(["a", "b"])
    vectors = {text: np.full(4, number, dtype=np.float32) for number, text in enumerate(texts)}
    file = VectorFile(tmp_path / "folder" / "vectors.sqlite")
    assert file.read(texts) == {}
    file.write(vectors)
    assert {text: vector.tolist() for text, vector in file.read([*texts, b"?"]).items()} == {
        text: vector.tolist() for text, vector in vectors.items()
    }

    file.path.write_bytes(b"not a database" * 100)
    assert file.read(texts) == {}
    file.write(vectors)  # the damaged file is gone
    assert len(file.read(texts)) == 2


@pytest.mark.parametrize(
    "module", ["custom.Transformer", "sentence_transformers.base.model.pickle", "sentence_transformers.models.Router"]
)
def test_modules_of_the_model_itself_are_refused(module: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": module}]))
    with pytest.raises(DataError, match=f"{module}.*runs no code of models"):
        check_modules(tmp_path)
    (tmp_path / "modules.json").write_text("{}}")
    with pytest.raises(DataError, match="not a list of modules"):
        check_modules(tmp_path)


def test_defects_are_found_before_a_run(encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library names the extra for encoders, which includes that for language models."""
    damaged = shutil.copytree(encoder, tmp_path / "damaged")
    options, folders = Encoder(model=str(damaged)), Folders(tmp_path, tmp_path / "cache")
    prefetch(options=options, folders=folders)
    (damaged / "model.safetensors").unlink()
    for preparation in (check, prefetch):
        with pytest.raises(DataError, match="no weights in safetensors"):
            preparation(options=options, folders=folders)
    monkeypatch.setattr(extras, "find_spec", lambda library: None)
    with pytest.raises(PeekbenchError, match=r"torch.*sentence_transformers: `pip install 'peekbench\[embeddings\]'`"):
        prefetch(options=options, folders=folders)


def test_arrays_are_refused(make_embedder: Callable[..., Embedder]) -> None:
    with pytest.raises(DataError, match="a sentence encoder takes texts"):
        make_embedder()(np.eye(2))
