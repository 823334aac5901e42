"""Parquet files are read within a limit of memory: what a few bytes stand for is not unpacked before it is measured."""

from __future__ import annotations

from pathlib import Path

import needs_hf  # noqa: F401
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from peekbench.data import read_parquet, size_limit
from peekbench.errors import DataError

REMEDY = "use less"


def test_all_kinds_of_columns_are_read_in_the_requested_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "number": pa.array([1, None, 3]),
        "text": pa.array(["a", None, "b"]),
        "category": pa.array(["x", "y", "x"]).dictionary_encode(),
        "code": pa.array([7, 7, 8]).dictionary_encode(),
        "list": pa.array([["a"], [], None]),
        "a.b": pa.array(["c", "d", "e"]),
    }
    pq.write_table(pa.table(columns), path, use_dictionary=["text"], column_encoding={"a.b": "DELTA_BYTE_ARRAY"})
    for names in (["list", "category", "number", "text", "code"], ["a.b", "text", "number"]):
        table = read_parquet(path, names, size_limit(0), REMEDY)
        assert table.column_names == names
        assert table.to_pylist() == pa.table(columns).select(names).to_pylist()
        assert not any(pa.types.is_dictionary(field.type) for field in table.schema)


@pytest.mark.parametrize("encoding", ["dictionary", "prefix", "compressed"])
def test_small_files_that_stand_for_long_texts_are_refused(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    if encoding == "dictionary":
        texts = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, "int32"), ["x" * 1_000_000])  # a terabyte
        pq.write_table(pa.table({"text": texts}), path, compression="zstd")
    elif encoding == "prefix":
        texts = pa.array([f"{'x' * 100_000}{row}" for row in range(200)])
        pq.write_table(pa.table({"text": texts}), path, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    else:
        pq.write_table(pa.table({"text": ["x" * 20_000_000]}), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 200_000
    with pytest.raises(DataError, match=r"bomb\.parquet: its columns unpack to [\d,.]+ GB.*; use less"):
        read_parquet(path, ["text"], 10_000_000, REMEDY)


def test_the_limit_grows_with_the_file() -> None:
    assert size_limit(1000) == 250_000_000
    assert size_limit(10**8) == 5 * 10**9
    assert size_limit(10**10) == 16 * 10**9
    assert size_limit(1000, 2) == 2_000_000_000
