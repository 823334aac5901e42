"""A hostile Hub writes nothing outside of the caches, and every answer that is not usable is a clear error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import needs_hf  # noqa: F401
import pytest
from hostile_hub import BEHAVIORS, PLANTED, HostileHub, attack, planted_files
from limits import TIMEOUT
from loopback_hub import LoopbackHub

from peekbench_hub.names import COMMIT, DIGEST, ETAG, FILE, is_valid
from peekbench_hub.requests import RefusedAnswerError, request

SLOW = {"info_429", "info_500", "head_503", "get_is_cut", "get_500"}
"""Behaviors that take seconds; `benchmarks/reliability/attack.py hub` tries them."""
MESSAGES = {
    "info_sha_is_a_path": f"{PLANTED}', which is not a full SHA",
    "info_is_a_login_page": "not in the Hub's format (JSONDecodeError",
    "info_is_a_list": "not in the Hub's format",
    "info_is_endless": "sent more than 33,554,432 bytes",
    "list_leaves_the_folder": "which is not a valid name",
    "list_has_too_many_files": "listed more than 50,000 files",
    "list_has_a_number_as_hash": "listed train.parquet with 5, which is not a valid hash",
    "list_has_a_short_hash": "listed train.parquet with 'ab', which is not a valid hash",
    "list_has_a_text_as_size": "listed train.parquet without its size",
    "list_has_another_hash": f"but the Hub lists {'0' * 40}",
    "list_redirects_to_another_host": "the Hub refuses access to this account",
    "head_etag_is_a_path": "invalid etag header",
    "head_commit_is_another": f"named another commit, '{'f' * 40}'",
    "head_404_commit_is_a_path": "named another commit, '../",
    "get_is_endless": "sent more than",
    "get_is_compressed": "compressed its answer",
    "get_has_other_rows": "it is damaged or not the Hub's, and was removed from",
}


@pytest.mark.slow
def test_a_hostile_hub_is_refused(tmp_path: Path) -> None:
    names = [name for name in BEHAVIORS if name not in SLOW]
    waits = [name for name in names if name.endswith(("drip", "drips", "is_silent"))]  # until the client gives up
    works = [name for name in names if name not in waits]
    parts = {tmp_path / "waits": (waits, 1), tmp_path / "works": (works, int(TIMEOUT))}
    with HostileHub() as hub, ThreadPoolExecutor() as pool:
        attacks = [pool.submit(attack, part, home, hub, timeout) for home, (part, timeout) in parts.items()]
        outcomes = [outcome for future in attacks for outcome in future.result()]
        assert not hub.leaked
    assert [outcome for outcome in outcomes if not outcome.is_good()] == []
    assert [file for home in parts for file in planted_files(home)] == []
    messages = {outcome.name: outcome.message for outcome in outcomes}
    assert len(messages) == len(names) > 70
    for name, message in MESSAGES.items():
        assert message in messages[name], name


def test_an_answer_that_does_not_end_is_refused() -> None:
    """No message depends on this in the tests above, because a slow machine may end such an answer in another way."""
    endless = Event()
    with pytest.raises(RefusedAnswerError, match="did not finish its answer in 1 seconds; for a slow network, set HF_"):
        request(endless.wait, seconds=0.6)
    endless.set()


@pytest.mark.slow
def test_the_hub_without_a_behavior_is_usable(tmp_path: Path) -> None:
    """The refusals above are not due to the server."""
    with HostileHub() as hub:
        (outcome,) = attack(["none"], tmp_path, hub)
    assert outcome.result == "loaded", outcome.message


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (COMMIT, "0123456789abcdef" * 2 + "01234567", True),
        (COMMIT, "0" * 40 + "\n", False),
        (COMMIT, "main", False),
        (COMMIT, None, False),
        (DIGEST, "0a" * 20, True),
        (DIGEST, "0a" * 32, True),
        (DIGEST, "0a" * 16, False),
        (DIGEST, "0A" * 32, False),
        (ETAG, 'W/"0af-1"', True),
        (ETAG, '"a/b"', False),
        (ETAG, '".."', False),
        (ETAG, '"a\0"', False),
        (FILE, "data/train-00000-of-00001.parquet", True),
        (FILE, ".gitattributes", True),
        (FILE, "..data/caf\u00e9 .csv", True),
        (FILE, "data/..", False),
        (FILE, "./data", False),
        (FILE, "data//x", False),
        (FILE, "data/", False),
        (FILE, "a\\b", False),
        (FILE, "a\u202eb", False),
        (FILE, "", False),
        (FILE, "x" * 1001, False),
        (FILE, ["x"], False),
    ],
)
def test_names_from_outside_are_checked(kind: str, value: object, expected: bool) -> None:
    assert is_valid(kind, value) is expected


def test_web_files_are_bounded(tmp_path: Path) -> None:
    """Files outside of the Hub use the same limits."""
    web = tmp_path / "hub" / "web"
    web.mkdir(parents=True)
    (web / "train.json").write_bytes(b"x" * 2**17)
    code = (
        "import sys; from pathlib import Path\n"
        "from peekbench import DataError; from peekbench_hub import downloads\n"
        "downloads.MAX_WEB_FILE_BYTES = 2**16\n"
        "try: downloads.download_web_file(sys.argv[1], Path(sys.argv[2]))\n"
        "except DataError as error: print(error)"
    )
    with LoopbackHub(tmp_path / "hub") as hub:
        hub.errors.append(("GET", "/web/", 503, "0"))
        process = hub.python(code, tmp_path, f"{hub.endpoint}/web/train.json", str(tmp_path / "got" / PLANTED))
    assert not hub.errors, "the request was tried again"
    assert "sent more than 65,536 bytes" in process.stdout, process.stderr
    assert not list(tmp_path.rglob(f"*{PLANTED}*"))
