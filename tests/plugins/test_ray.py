"""Tests of the executor `ray` on a cluster of several nodes on this machine."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from limits import TIMEOUT
from ray_nodes import RayNodes

from peekbench import PeekbenchError
from peekbench.execution.runner import run
from peekbench.records import Resources
from peekbench.store.reader import Store
from peekbench_testing import check_entry

pytest.importorskip("ray", reason="the extra 'ray' is not installed")

from peekbench_ray.executor import MAX_FOLDER, RayPool, find_address
from peekbench_ray.options import Ray
from peekbench_ray.placement import Node, place, worker_environment

FIXTURES = Path(__file__).parents[1] / "fixtures"
SLOW = {"use": "toy.faulty", "name": "slow", "options": {"error": "none", "seconds": 0.01}}


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    """Return a cluster of two nodes with one core each."""
    cluster = RayNodes({"one": 1, "two": 1})
    yield cluster
    cluster.close()


@pytest.fixture
def make_quick(make_spec: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a spec of quick trials."""

    def make(executor: object, num_subsamples: int = 3, **parts: Any) -> Any:
        design = {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}
        return make_spec(
            **{
                "methods": ["toy.vote", SLOW],
                "design": design,
                "analyses": ["toy.count"],
                "executor": executor,
                **parts,
            }
        )

    return make


def numbers(path: Path, leave_out: str = "") -> tuple[list[tuple[Any, ...]], list[bytes]]:
    """Return all results of a run except times and a method: the results table, and every prediction."""
    with Store.open(path) as store:
        columns = {key: values for key, values in store.result_columns().items() if not key.endswith("seconds")}
        rows = zip(*columns.values(), strict=True)
        kept = [row for row, method in zip(rows, columns["method"], strict=True) if method != leave_out]
        trials = sorted((trial for trial in store.done() if trial.method != leave_out), key=str)
        return kept, [arm.numbers.tobytes() for trial in trials for _, arm in sorted(store.predictions(trial).items())]


def on(nodes: RayNodes, **options: Any) -> dict[str, Any]:
    return {"use": "ray", "options": {"address": nodes.address, **options}}


def wait_for(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        time.sleep(0.05)


def test_only_workers_whose_trials_ask_for_a_gpu_see_one() -> None:
    assert worker_environment("n", Resources(cpus=2))["CUDA_VISIBLE_DEVICES"] == ""
    assert worker_environment("n", Resources(gpus=0.5)) == {"PEEKBENCH_NODE": "n", "PEEKBENCH_GPU_FRACTION": "0.500000"}


@pytest.mark.slow
def test_only_deaths_on_nodes_that_live_count(nodes: RayNodes, make_quick: Any, tmp_path: Path) -> None:
    """Kill a node during a run without retries, in which few trials kill their actor, as Ray does if memory runs out.

    The node cannot read the data, which it is sent.
    """
    expected = run(make_quick({"use": "local"}, 60), store=tmp_path / "local.sqlite")
    kills = {"use": "toy.faulty", "name": "kills", "options": {"error": "kill parent", "share": 0.004}}
    spec = make_quick(on(nodes, retries=0), 60, methods=["toy.vote", SLOW, kills])
    store = tmp_path / "ray.sqlite"
    nodes.add("doomed", environment={"TOY_DATA": "none"})

    def disturb() -> None:
        wait_for(lambda: "doomed" in hosts(store), "work on a node")
        nodes.kill("doomed")

    thread = threading.Thread(target=disturb)
    thread.start()
    summary = run(spec, store=store, keep_going=True)
    thread.join()
    with Store.open(store) as opened:
        failures = opened.failures()
    assert summary.failed == len(failures) > 0
    assert {failure.trial.method for failure in failures} == {"kills"}
    assert all("worker process died (" in failure.error and "1 times" in failure.error for failure in failures)
    assert numbers(store, leave_out="kills") == numbers(expected.store)
    assert hosts(store) >= {"one", "two", "doomed"}


def hosts(path: Path) -> set[str]:
    """Return the names of the nodes that have done trials, also during a run."""
    if not path.exists():
        return set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection, suppress(sqlite3.OperationalError):
        return {
            host
            for (host,) in connection.execute("SELECT DISTINCT name FROM hosts JOIN trials ON hosts.id = trials.host")
        }
    return set()


def _change_code(folder: Path) -> dict[str, str]:
    """Return an environment with another line in the plugin, and other versions."""
    for name in ("peekbench-toy", "numpy"):
        description = folder / f"{name.replace('-', '_')}-0.1.dist-info"
        description.mkdir()
        (description / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    shutil.copy(FIXTURES / "peekbench_toy-1.0.dist-info" / "entry_points.txt", folder / "peekbench_toy-0.1.dist-info")
    plugin = (FIXTURES / "peekbench_toy.py").read_text()
    (folder / "peekbench_toy.py").write_text(plugin.replace("trust: float = 1.0", "trust: float = 1.1"))
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])}


@pytest.mark.slow
def test_a_node_that_differs_is_refused(nodes: RayNodes, make_quick: Any, tmp_path: Path) -> None:
    nodes.add("other", environment=_change_code(tmp_path))
    try:
        with pytest.raises(PeekbenchError, match="other") as caught:
            run(make_quick(on(nodes), 3000), store=tmp_path / "refused.sqlite")
        for message in ("plugin toy: peekbench_toy.py changed", "numpy: 0.1 instead of"):
            assert message in str(caught.value)
        assert "other" not in hosts(tmp_path / "refused.sqlite")
    finally:
        nodes.remove("other")


@pytest.mark.slow
def test_a_cluster_of_its_own_is_private_and_ends_with_the_run(make_raw: Any) -> None:
    slow = {"use": "toy.faulty", "name": "slow", "options": {"error": "none", "seconds": 0.1}}
    raw = make_raw(methods=[slow], executor={"use": "ray", "options": {"workers": 1}}, analyses=["toy.count"])
    raw["design"]["num_subsamples"] = 2000
    Path("own.yaml").write_text(yaml.safe_dump(raw))
    parent = Path(tempfile.mkdtemp(prefix="pbray", dir="/tmp"))
    assert len(str(parent)) == MAX_FOLDER
    process = subprocess.Popen(
        [sys.executable, "-m", "peekbench", "run", "own.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(parent), "RAY_AUTH_MODE": "disabled"},
        start_new_session=True,
    )
    try:
        wait_for(lambda: hosts(Path("runs/small.sqlite")) or process.poll() is not None, "the first trials")
        children = psutil.Process(process.pid).children(recursive=True)
        (raylet,) = [child.cmdline() for child in children if child.name() == "raylet"]
        arguments = dict(word.removeprefix("--").split("=", 1) for word in raylet if "=" in word)
        (folder,) = parent.iterdir()
        assert Path(arguments["temp_dir"]).parent == folder
        assert folder.stat().st_mode & 0o777 == 0o700
        listening = [
            (child.name(), socket_.laddr.ip.removeprefix("::ffff:"))
            for child in children
            for socket_ in child.net_connections("inet")
            if socket_.status == psutil.CONN_LISTEN
        ]
        assert {"raylet", "gcs_server"} <= {name for name, _ in listening}
        assert {ip for _, ip in listening} <= {"127.0.0.1", "::1"}, listening
    finally:
        os.killpg(process.pid, signal.SIGINT)  # like a terminal, to all processes of the run
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + signal.SIGINT, (out, err)
    assert "To resume the run" in err
    assert "Traceback" not in out + err
    assert psutil.wait_procs(children, timeout=TIMEOUT)[1] == []
    parent.rmdir()  # which fails if a file is left


@pytest.mark.slow
def test_resources_that_no_node_has_end_the_run(nodes: RayNodes, make_quick: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("peekbench.execution.work.SpecWork.needs", lambda work, item: Resources(cpus=64, gpus=0.5))
    with pytest.raises(PeekbenchError, match=r"trials need 64 CPU, 0.5 GPU, and no machine.*one: 1 CPU"):
        run(make_quick(on(nodes, patience=0.2)))


@pytest.mark.slow
def test_the_executor_passes_its_contract_checks(nodes: RayNodes) -> None:
    outcomes = check_entry("ray", {"address": nodes.address, "retries": 1})
    assert [outcome for outcome in outcomes if not outcome.passed or outcome.message] == []


def test_wrong_addresses_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(PeekbenchError, match=r"address: no Ray cluster answers at 127.0.0.1:\d+ .*refused"):
            find_address(f"127.0.0.1:{unused.getsockname()[1]}")
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(PeekbenchError, match="no Ray cluster answers at nowhere .*such as 10.0.0.1:6379"):
        find_address("auto")


@pytest.mark.parametrize(
    ("work", "executable"),
    [(lambda item: None, sys.executable), (None, "/nowhere/python")],
    ids=["work", "interpreter"],
)
def test_a_pool_that_cannot_start_leaves_no_process_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Any, executable: str
) -> None:
    monkeypatch.setattr("peekbench_ray.executor._make_folder", lambda: tempfile.mkdtemp(dir=tmp_path))
    monkeypatch.setattr(sys, "executable", executable)
    before = psutil.Process().children()
    with pytest.raises((pickle.PicklingError, AttributeError, FileNotFoundError)):  # a function cannot be pickled
        RayPool([], work, Ray())
    assert psutil.Process().children() == before
    assert list(tmp_path.iterdir()) == []


CPU, GPU = Resources(), Resources(gpus=0.5)


def make_node(name: str, cpus: float = 2, gpus: float = 0, *, is_prepared: bool = True) -> Node:
    return Node(name, name, Resources(cpus, 10**9, gpus), is_prepared)


@pytest.mark.parametrize(
    ("nodes", "used", "demand", "room", "expected"),
    [
        ([make_node("a"), make_node("b")], {}, {CPU: 9}, 9, ["a", "b", "a", "b"]),
        ([make_node("a"), make_node("b")], {"a": [CPU]}, {CPU: 9}, 2, ["b", "a"]),
        ([make_node("a"), make_node("b", is_prepared=False)], {}, {CPU: 9}, 9, ["a", "b", "a"]),
        ([make_node("a", is_prepared=False)], {"a": [CPU]}, {CPU: 9}, 9, []),
        ([make_node("a"), make_node("b", cpus=4, gpus=1)], {}, {GPU: 9}, 9, ["b", "b"]),
        ([make_node("a", cpus=3, gpus=1)], {}, {GPU: 1, CPU: 9}, 9, ["a", "a", "a"]),
        ([make_node("a")], {}, {CPU: 1}, 9, ["a"]),
        ([make_node("a", cpus=1)], {}, {Resources(0.1): 20}, 99, ["a"] * 10),
        ([make_node("a")], {}, {Resources(memory=6 * 10**8): 5}, 9, ["a"]),
    ],
)
def test_workers_are_spread_over_nodes_with_room(nodes: Any, used: Any, demand: Any, room: int, expected: Any) -> None:
    assert [node.name for node, _ in place(nodes, used, demand, room)] == expected
