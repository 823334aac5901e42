"""The data source `tabular.openml` against the answers of OpenML that scikit-learn ships, on the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pytest
import sklearn.datasets
from pydantic import ValidationError

import peekbench as pb
from peekbench.data.loading import check_dataset
from peekbench.errors import DataError, UnavailableError
from peekbench.records.data import Dataset, Folders
from peekbench_tabular.openml import SERVER_VARIABLE, load, pin
from peekbench_tabular.options import OpenmlOptions

ANSWERS = Path(sklearn.datasets.__file__).parent / "tests" / "data" / "openml"
pytestmark = pytest.mark.skipif(not ANSWERS.is_dir(), reason="this build of scikit-learn has no answers of OpenML")


class LoopbackOpenml:
    """Server that answers as OpenML, and counts requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.changed: dict[str, bytes] = {}
        """Answers by the end of the path, instead of those of OpenML."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                body, status = outer.find(self.path), 200
                if body is None:
                    body, status = b'{"error":{"code":"111","message":"Unknown dataset"}}', 412
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def find(self, path: str) -> bytes | None:
        """Return the answer to a request."""
        for end, body in self.changed.items():
            if path.endswith(end):
                return body
        parts = path.strip("/").split("/")
        if "data_name" in parts:
            name, kind = parts[parts.index("data_name") + 1], parts[-2:]
            end = "s-act-" if kind == ["status", "active"] else f"dv-{kind[1]}"
            pattern = f"*/api-v1-jdl-dn-{name}-l-2-{end}.json.gz"
        elif parts[:3] == ["data", "v1", "download"]:
            pattern = f"*/data-v1-dl-{parts[3]}.arff.gz"
        else:
            pattern = f"*/api-v1-jd-{parts[-1]}.json.gz"
        file = next(iter(sorted(ANSWERS.glob(pattern))), None)
        return None if file is None else gzip.decompress(file.read_bytes())

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self.thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()


@pytest.fixture
def openml(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackOpenml]:
    """Start the server."""
    server = LoopbackOpenml()
    monkeypatch.setenv(SERVER_VARIABLE, f"http://127.0.0.1:{server.server.server_port}")
    monkeypatch.setenv("NO_PROXY", "*")
    yield server
    server.stop()


def read(folder: Path, **options: Any) -> Dataset:
    dataset = load(options=OpenmlOptions.model_validate(options), folders=Folders(folder, folder / "cache"))
    check_dataset(dataset, "tabular.openml")
    return dataset


def test_a_data_set_is_downloaded_once_and_then_read_offline(openml: LoopbackOpenml, tmp_path: Path) -> None:
    dataset = read(tmp_path, id=61)
    assert np.shape(dataset.inputs) == (150, 4)
    assert dataset.class_names == ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
    assert dataset.details["version"] == "OpenML 61, MD5 ad4844527021"
    assert dataset.details["license"] == "Public"
    assert openml.requests == ["/api/v1/json/data/61", "/data/v1/download/61"]
    openml.stop()
    np.testing.assert_array_equal(np.asarray(read(tmp_path, id=61).inputs), np.asarray(dataset.inputs))
    with pytest.raises(UnavailableError, match=r"OpenML data set 2: not in this machine's cache"):
        read(tmp_path, id=2)


def test_names_and_versions_are_pinned_to_a_number(openml: LoopbackOpenml, tmp_path: Path) -> None:
    folders = Folders(tmp_path, tmp_path / "cache")
    pinned = pin(options=OpenmlOptions(name="iris", version=1), folders=folders)
    assert pinned == {"id": 61, "md5": "ad484452702105cbf3d30f8deaba39a9"}
    assert len(read(tmp_path, name="iris", version=1, **pinned).labels) == 150
    with pytest.raises(DataError, match="has the version 1, not 2"):
        read(tmp_path, name="iris", version=2, id=61)
    with pytest.raises(DataError, match=r"lists the MD5 ad48.*--lock --newest"):
        read(tmp_path, id=61, md5="0" * 32)


def test_several_active_versions_are_refused(openml: LoopbackOpenml, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'iris' has several active versions: version 1 \(id 61\), version"):
        read(tmp_path, name="iris")


def test_identifiers_and_ignored_columns_are_no_features(openml: LoopbackOpenml, tmp_path: Path) -> None:
    """MouseID, Genotype, Treatment and Behavior are marked so."""
    dataset = load(options=OpenmlOptions(id=40966), folders=Folders(tmp_path, tmp_path / "cache"))  # its first rows
    assert np.shape(dataset.inputs)[1] == 77
    assert dataset.class_names == ("c-CS-m",)


def test_categories_and_texts_of_a_mixed_data_set(openml: LoopbackOpenml, tmp_path: Path) -> None:
    """`Titanic` has quoted commas, escaped names, missing values and free text."""
    frame: Any = read(tmp_path, id=40945, encode="none", drop=["name", "ticket", "home.dest"]).inputs
    assert list(frame["embarked"].cat.categories) == ["C", "Q", "S"]
    assert int(frame["age"].isna().sum()) == 263
    assert any("'name' has" in warning for warning in read(tmp_path, id=40945).details["warnings"])


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (999, r"OpenML data set 999: OpenML does not have it; correct `id`"),
        (292, r"has the format Sparse_ARFF; only ARFF is read"),
        (40589, r"has several targets, amazed\.suprised,.*choose one as `label`"),
        (42074, r"has no default target; set `label` to one of its columns"),
    ],
)
def test_unsuitable_data_sets_are_errors(number: int, message: str, openml: LoopbackOpenml, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, id=number)


def test_a_damaged_file_is_removed_and_downloaded_again(openml: LoopbackOpenml, tmp_path: Path) -> None:
    openml.changed["/download/61"] = b"@relation r\n@attribute a numeric\n@data\n1\n"
    with pytest.raises(UnavailableError, match=r"has the MD5 .*, but OpenML lists ad48.*damaged and was removed"):
        read(tmp_path, id=61)
    openml.changed.clear()
    assert len(read(tmp_path, id=61).labels) == 150


def test_a_file_in_another_encoding_is_left_to_another_source(openml: LoopbackOpenml, tmp_path: Path) -> None:
    file = "@relation r\n@attribute a {x,\u00e9}\n@attribute class {u,v}\n@data\nx,u\n\u00e9,v\n".encode("latin-1")
    facts = json.loads(openml.find("/api/v1/json/data/61") or b"")
    facts["data_set_description"]["md5_checksum"] = hashlib.md5(file, usedforsecurity=False).hexdigest()
    openml.changed = {"/data/61": json.dumps(facts).encode(), "/download/61": file}
    with pytest.raises(
        DataError, match=r"is not utf-8: .*; read this file with tabular\.file and its `encoding`"
    ) as caught:
        read(tmp_path, id=61)
    path = str(caught.value).partition(" is not")[0]
    options = {"path": path, "label": "class", "encoding": "latin-1"}
    assert np.shape(pb.load_dataset("tabular.file", options, folder=tmp_path).inputs) == (2, 2)


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>login</html>",
        b"[]",
        b'{"data_set_description": {"id": "61", "md5_checksum": "../../x", "file_id": "1"}}',
    ],
)
def test_answers_in_another_format_are_not_used(answer: bytes, openml: LoopbackOpenml, tmp_path: Path) -> None:
    openml.changed["/data/61"] = answer
    with pytest.raises(UnavailableError, match=r"OpenML data set 61: http"):
        read(tmp_path, id=61)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "no data set; set `id`"), ({"id": 1, "version": 2}, "`name` is not set"), ({"name": "../x"}, "pattern")],
)
def test_options_name_one_data_set(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OpenmlOptions.model_validate(options)
