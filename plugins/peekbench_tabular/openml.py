"""The data source `tabular.openml`: a data set of OpenML, downloaded once and verified.

The API is that of https://www.openml.org/apis; a data set's number stands for one version, whose file never changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from peekbench import DataError, Dataset, Folders
from peekbench.data.text_files import read_lines
from peekbench.errors import UnavailableError
from peekbench.formatting import list_names, shorten, visible
from peekbench_hub.downloads import NotFoundError, download_web_file
from peekbench_tabular.arff import read_arff
from peekbench_tabular.options import OpenmlOptions
from peekbench_tabular.table import Table, make_dataset

SERVER = "https://www.openml.org"
SERVER_VARIABLE = "PEEKBENCH_OPENML"
UNKNOWN = 412  # HTTP status of OpenML for data sets that it does not have
MD5 = re.compile(r"[0-9a-f]{32}")
MAX_DESCRIPTION_BYTES = 2**24


def load(*, options: OpenmlOptions, folders: Folders) -> Dataset:
    """Load a data set, from the cache if it was downloaded before.

    Parameters
    ----------
    options
        Data set and columns.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    DataError
        If OpenML does not have the data set, its file differs from the one that OpenML lists, or it is unsuitable.
    """
    facts = _describe(options, folders)
    title = f"OpenML data set {facts['id']} ({visible(shorten(str(facts.get('name')), 60))})"
    file = _download(facts, title, folders)
    columns = read_arff(read_lines(file, remedy="read this file with tabular.file and its `encoding`"), title)
    if not columns[0].values:
        raise DataError(f"{title} has no rows; choose another one")
    unused = [name for key in ("row_id_attribute", "ignore_attribute") for name in _as_list(facts.get(key))]
    chosen = options.model_copy(
        update={
            "label": options.label or _find_target(facts, [column.name for column in columns], title),
            "drop": tuple(dict.fromkeys((*options.drop, *unused))) if not options.columns else options.drop,
        }
    )
    table = Table(columns, [(title, len(columns[0].values))])
    details = {
        "from": f"{_server()}/d/{facts['id']}",
        "version": f"OpenML {facts['id']}, MD5 {facts['md5_checksum'][:12]}",
        "license": str(facts.get("licence") or "not stated"),
        "rows_read": len(columns[0].values),
    }
    return make_dataset(table, chosen, details)


def pin(*, options: OpenmlOptions, folders: Folders) -> Mapping[str, Any]:
    """Return the number of the data set and the MD5 of its file.

    Parameters
    ----------
    options
        Data set.
    folders
        Folders of the spec and the cache.
    """
    facts = _describe(options, folders)
    return {"id": int(facts["id"]), "md5": facts["md5_checksum"]}


def _server() -> str:
    return os.environ.get(SERVER_VARIABLE, SERVER).rstrip("/")


def _describe(options: OpenmlOptions, folders: Folders) -> dict[str, Any]:
    """Return what OpenML says about a data set."""
    number = options.id or _find_number(options, folders)
    place = f"OpenML data set {number}"
    answer = _ask(f"api/v1/json/data/{number}", place, folders)
    facts: Any = answer.get("data_set_description")
    if not isinstance(facts, dict) or str(facts.get("id")) != str(number):
        raise _unusable(place, "sent no description of it")
    if not MD5.fullmatch(str(facts.get("md5_checksum"))) or not str(facts.get("file_id")).isdecimal():
        raise _unusable(place, "listed no file with an MD5")
    for name, wanted in (("name", options.name), ("version", options.version)):
        if wanted is not None and str(facts.get(name)).lower() != str(wanted).lower():
            raise DataError(f"{place} has the {name} {visible(str(facts.get(name)))}, not {wanted}; correct `id` or it")
    if options.md5 and options.md5 != facts["md5_checksum"]:
        raise DataError(
            f"{place}: OpenML lists the MD5 {facts['md5_checksum']}, but the option `md5` is {options.md5}; if the new "
            "file is right, run `peekbench validate --lock --newest` or remove `md5`"
        )
    if str(facts.get("format")).lower() != "arff":
        raise DataError(f"{place} has the format {visible(str(facts.get('format')))[:40]}; only ARFF is read")
    return facts


def _find_number(options: OpenmlOptions, folders: Folders) -> int:
    """Return the number of the data set with a name."""
    chosen = "status/active" if options.version is None else f"data_version/{options.version}"
    place = f"OpenML data set {options.name!r}"
    answer = _ask(f"api/v1/json/data/list/data_name/{quote(str(options.name))}/limit/20/{chosen}", place, folders)
    try:
        found = {int(item["did"]): str(item["version"]) for item in answer["data"]["dataset"]}
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(place, "sent no list of data sets") from error
    if not found:
        raise _unusable(place, "sent an empty list of data sets")
    if len(found) > 1:
        listed = list_names([f"version {version} (id {number})" for number, version in found.items()], 10)
        raise DataError(f"{place} has several active versions: {listed}; set `version` or `id`")
    return next(iter(found))


def _ask(path: str, place: str, folders: Folders) -> dict[str, Any]:
    """Return an answer of the API, which is kept in the cache."""
    url = f"{_server()}/{path}"
    file = folders.cache / "openml" / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"
    if not file.is_file():
        _fetch(url, file, place)
    try:
        if file.stat().st_size > MAX_DESCRIPTION_BYTES:
            raise ValueError("it is too large")
        answer = json.loads(file.read_text("utf-8"))
        if not isinstance(answer, dict):
            raise TypeError("it is no object")
    except (ValueError, TypeError, RecursionError) as error:
        file.unlink()
        raise _unusable(place, f"sent an answer that is not in its format ({error})") from error
    return answer


def _download(facts: Mapping[str, Any], place: str, folders: Folders) -> Path:
    """Return the file of a data set, which has the MD5 that OpenML lists."""
    expected = facts["md5_checksum"]
    file = folders.cache / "openml" / f"{facts['id']}-{expected}.arff"
    if not file.is_file():
        _fetch(f"{_server()}/data/v1/download/{facts['file_id']}", file, place)
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != expected:
        file.unlink()
        raise UnavailableError(
            place,
            f"its file has the MD5 {found}, but OpenML lists {expected}, so it is damaged and was removed. Try again; "
            "if this recurs, check the network, such as its proxy",
        )
    return file


def _fetch(url: str, file: Path, place: str) -> None:
    try:
        download_web_file(url, file)
    except NotFoundError as error:
        raise _unusable(place, f"does not have {url}") from error
    except UnavailableError as error:
        if _status(error) == UNKNOWN:
            raise DataError(f"{place}: OpenML does not have it; correct `id`, or `name` and `version`") from error
        cause = str(error.__cause__ or error).partition("\n")[0]
        raise UnavailableError(
            place,
            f"not in this machine's cache, and {_server()} cannot be used ({visible(shorten(cause, 200))}). Check the "
            "network and try again; afterwards, runs need no network",
        ) from error


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status of the response that caused an error."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(response.status_code)
        error = error.__cause__
    return None


def _unusable(place: str, problem: str) -> UnavailableError:
    return UnavailableError(place, f"{_server()} {problem}; check the network, such as its proxy, and try again")


def _as_list(value: Any) -> list[str]:
    """Return the names in an attribute of a description: a text, which can have several, or a list."""
    values = value if isinstance(value, list) else [value]
    return list(chain.from_iterable(str(name).split(",") for name in values if name))


def _find_target(facts: Mapping[str, Any], names: list[str], title: str) -> str:
    target = str(facts.get("default_target_attribute") or "")
    if target in names:
        return target
    if all(name in names for name in target.split(",")):
        raise DataError(f"{title} has several targets, {target}; choose one as `label`, and add the others to `drop`")
    raise DataError(f"{title} has no default target; set `label` to one of its columns: {list_names(names, 30)}")
