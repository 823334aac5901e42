"""Files that are written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from peekbench.cache import atomic_write, read_cached, write_cached


def test_a_file_replaces_a_link_and_never_follows_it(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target = tmp_path / "folder" / "report.html"
    target.parent.mkdir()
    target.symlink_to(precious)
    with atomic_write(target) as temporary:
        assert temporary.suffix == ".html"
        assert temporary.parent.stat().st_mode & 0o777 == 0o700, "nobody else can place a link there"
        temporary.write_text("new")
    assert (precious.read_text(), target.read_text()) == ("mine", "new")
    assert not target.is_symlink()
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_after_a_failure(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "file"
    target.write_text("before")
    with pytest.raises(type(error)), atomic_write(target) as temporary:
        temporary.write_text("half")
        raise error
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_damaged_cached_value_is_none(tmp_path: Path) -> None:
    path = tmp_path / "value"
    write_cached(path, {"a": "\ud800"})
    assert read_cached(path) == {"a": "\ud800"}
    path.write_bytes(path.read_bytes()[:-1])
    assert read_cached(path) is None
