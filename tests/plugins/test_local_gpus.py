"""Tests of GPUs that workers of the executor `local` share by memory, with a listing instead of GPUs."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from peekbench import PeekbenchError
from peekbench.plugins import Gpu, list_gpus
from peekbench.records import Resources, WorkItem
from peekbench.records.trials import Draw, Trial
from peekbench_local import executor
from peekbench_local.executor import execute
from peekbench_local.options import Local
from peekbench_local.placement import NO_GPU, GpuNeed, Placement

toy_work = import_module("toy_work")  # in tests/fixtures, where worker processes find it too
GB = 10**9
H200 = Gpu("0", "GPU-a", "H200", 141 * GB)
L4 = Gpu("1", "GPU-b", "L4", 24 * GB, used=2 * GB)
LISTING = """\
0, GPU-aa11, NVIDIA H200, 143771, 4
1, GPU-bb22, NVIDIA H200, 143771, 4
"""


def place_all(placement: Placement, need: GpuNeed) -> list[str]:
    grants: list[Any] = []
    while (grant := placement.place(need, grants)) is not None:
        grants.append(grant)
    return ["+".join(gpu.uuid for gpu in grant.gpus) for grant in grants]


@pytest.mark.parametrize(
    ("resources", "memory", "counts"),
    [
        (Resources(gpus=1), None, (1, 1)),
        (Resources(gpus=0.5), None, (2, 2)),
        (Resources(gpus=1), 6 * GB, (21, 3)),  # 0.9 * 141 / 6 = 21.2 and (0.9 * 24 - 2) / 6 = 3.3
        (Resources(gpus=1, gpu_memory=30 * GB), None, (4, 0)),  # 0.9 * 141 / 30 = 4.2
        (Resources(gpus=1, gpu_memory=30 * GB), 6 * GB, (21, 3)),
    ],
)
def test_as_many_workers_share_a_gpu_as_fit(resources: Resources, memory: int | None, counts: tuple[int, int]) -> None:
    placement = Placement((H200, L4), memory)
    placed = place_all(placement, placement.need(resources))
    assert (placed.count("GPU-a"), placed.count("GPU-b")) == counts


def test_a_trial_of_several_gpus_gets_whole_ones() -> None:
    placement = Placement((H200, L4), None)
    assert place_all(placement, placement.need(Resources(gpus=2))) == ["GPU-a+GPU-b"]
    with pytest.raises(PeekbenchError, match=r"needs 3 GPUs, and this process may use 2"):
        placement.need(Resources(gpus=3))


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(PeekbenchError, match=r"needs 130.0 GB .* H200 offers 126.9 GB .* L4 offers 19.6 GB"):
        Placement((H200, L4), None).need(Resources(gpus=1, gpu_memory=130 * GB))
    with pytest.raises(PeekbenchError, match="trials need a GPU, and this process may use none"):
        Placement((), None).need(Resources(gpus=1))
    with pytest.raises(PeekbenchError, match="`gpu_memory` requires the program nvidia-smi"):
        Placement(None, 6 * GB)
    assert Placement(None, None).need(Resources(gpus=1)) == NO_GPU  # workers see what this process sees


def test_the_environment_limits_a_worker_to_its_gpu_and_share() -> None:
    grant = Placement((H200, L4), 6 * GB).place(GpuNeed(1, 6 * GB), ())
    assert grant is not None
    assert grant.environment() == {"CUDA_VISIBLE_DEVICES": "GPU-a", "PEEKBENCH_GPU_FRACTION": "0.042553"}
    whole = Placement((H200,), None).place(GpuNeed(1), ())
    assert whole is not None
    assert whole.environment() == {"CUDA_VISIBLE_DEVICES": "GPU-a"}


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with the GPUs that a program called nvidia-smi lists."""
    file, program = tmp_path / "gpus.csv", tmp_path / "nvidia-smi"
    file.write_text(LISTING)
    program.write_text(f'#!/bin/sh\n[ -f "{file}" ] || {{ echo "No devices were found"; exit 6; }}\ncat "{file}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return file


def test_gpus_are_listed_as_cuda_would_show_them(listing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def uuids() -> list[str]:
        return [gpu.uuid for gpu in list_gpus() or ()]

    assert uuids() == ["GPU-aa11", "GPU-bb22"]
    for visible, expected in [("1,0", ["GPU-bb22", "GPU-aa11"]), ("GPU-b", ["GPU-bb22"]), ("7,0", []), ("", [])]:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert uuids() == expected
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-12")
    assert list_gpus() is None
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    listing.write_text("0, GPU-aa11\n")
    with pytest.raises(PeekbenchError, match="nvidia-smi printed '0, GPU-aa11'"):
        list_gpus()
    listing.unlink()
    with pytest.raises(PeekbenchError, match="cannot list the GPUs of this machine: No devices were found"):
        list_gpus()


@pytest.mark.slow
@pytest.mark.usefixtures("listing")
def test_workers_get_gpus_and_other_trials_any_worker() -> None:
    methods = ["cpu"] * 6 + ["gpu"] * 12 + ["large"] * 12 + ["cpu"] * 6
    items = [
        WorkItem((Trial(Draw("a", 1, 1, number), method),), has_base=False) for number, method in enumerate(methods)
    ]
    work, options = toy_work.Toy(toy_work.record_gpu), Local(workers=4)
    batches: Any = execute(items, work, options=options)
    outcomes = [outcome for batch in batches for outcome in batch]
    assert sorted(number for number, *_ in outcomes) == list(range(len(items)))
    environments: dict[str, set[Any]] = {}
    for number, *environment in outcomes:
        environments.setdefault(methods[number], set()).add(tuple(environment))
    assert environments["gpu"] <= {("GPU-aa11", None), ("GPU-bb22", None)}  # whole GPUs
    fraction = f"{30 * GB / (143771 * 2**20):.6f}"
    assert environments["large"] <= {("GPU-aa11", fraction), ("GPU-bb22", fraction)}


ESTIMATE = Resources(gpus=1, gpu_memory=6 * GB, is_estimate=True, is_gpu_optional=True)


def make_cards(*sizes: int) -> tuple[Gpu, ...]:
    return tuple(Gpu(str(number), f"GPU-{number}", f"{size} GB", size * GB) for number, size in enumerate(sizes))


@pytest.mark.parametrize(
    ("sizes", "gigabytes", "counts", "limits"),
    [
        ((80,), 6, [12], [6]),
        ((24,), 6, [3], [7.2]),  # the room that is left is divided
        ((8,), 6, [1], [8]),  # a worker alone may use the whole GPU
        ((8,), 15.5, [1], [8]),  # more than the GPU has: micro-batches may fit
        ((24, 80), 15.5, [1, 4], [24, 18]),
        ((8, 24), 15.5, [0, 1], [24]),
        ((8, 8), 6, [1, 1], [8, 8]),
    ],
)
def test_estimates_fill_every_gpu(
    sizes: tuple[int, ...], gigabytes: float, counts: list[int], limits: list[float]
) -> None:
    placement = Placement(make_cards(*sizes), None)
    need = placement.need(replace(ESTIMATE, gpu_memory=int(gigabytes * GB)))
    placed = place_all(placement, need)
    assert [placed.count(f"GPU-{number}") for number in range(len(sizes))] == counts
    assert placement.count_places(need) == sum(counts)
    grants: list[Any] = []
    while (grant := placement.place(need, grants)) is not None:
        grants.append(grant)
    found = {grant.gpus[0].uuid: grant.limit / GB for grant in grants}
    assert [found[name] for name in sorted(found)] == pytest.approx(limits)


def test_an_optional_gpu_is_used_if_there_is_one() -> None:
    assert Placement((), None).need(ESTIMATE) == NO_GPU
    assert Placement(None, None).need(ESTIMATE) == NO_GPU
    with pytest.raises(PeekbenchError, match="trials need a GPU, and this process may use none"):
        Placement((), None).need(replace(ESTIMATE, is_gpu_optional=False))
    both = ESTIMATE | Resources(gpus=1)
    assert not both.is_gpu_optional
    assert (ESTIMATE | Resources(cpus=2)).is_gpu_optional


@pytest.mark.slow
def test_without_a_number_of_workers_every_gpu_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(executor, "list_gpus", lambda: make_cards(11, 12))
    items = [WorkItem((Trial(Draw("a", 1, 1, number), "auto"),), has_base=False) for number in range(12)]
    batches: Any = execute(items, toy_work.Toy(toy_work.record_gpu), options=Local())
    assert {gpu for batch in batches for _, gpu, _ in batch} == {"GPU-0", "GPU-1"}


@pytest.mark.usefixtures("listing")
def test_a_run_that_cannot_fit_ends_with_a_sentence() -> None:
    items = [WorkItem((Trial(Draw("a", 1, 1, 0), "gpu"),), has_base=False)]
    with pytest.raises(PeekbenchError, match="needs 200.0 GB of the memory of a GPU"):
        list(execute(items, toy_work.Toy(toy_work.record_gpu), options=Local(workers=2, gpu_memory=200)))
