"""The folder in which a reader of the documentation would be."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
import yaml
from installed_plugins import uninstall_modules

import peekbench as pb
from peekbench.api import measuring
from peekbench.spec.design import OFFICIAL
from peekbench.spec.experiment import make_spec

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "fixtures" / "docs_folder"
NUM_SUBSAMPLES = 2
OFFICIAL_TASK = {"use": "files", "name": "official", "options": {"path": "train.csv", "test_path": "test.csv"}}


@pytest.fixture(scope="session")
def supposed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the documentation supposes, and a small run of the quickstart."""
    folder = tmp_path_factory.mktemp("docs") / "folder"
    shutil.copytree(FILES, folder)
    shutil.copy(ROOT / "docs" / "guides" / "example_scores.csv", folder)
    shutil.copytree(ROOT / "specs", folder / "specs")  # commands of the documentation write there
    spec = yaml.safe_load((ROOT / "specs" / "quickstart.yaml").read_text())
    spec["tasks"] = ["docstrings.numpy", "docstrings.pandas"]
    spec["design"]["num_subsamples"] = NUM_SUBSAMPLES
    spec["executor"] = {"use": "local", "options": {"in_process": True}}
    (folder / "specs" / "quickstart.yaml").write_text(yaml.safe_dump(spec))
    rng = np.random.default_rng(0)
    rows = [f"text {row},{'good' if row % 2 else 'bad'}" for row in range(700)]
    (folder / "reviews.csv").write_text("\n".join(["review,rating", *rows]) + "\n")
    for split, number in (("train", 60), ("test", 40)):
        words = rng.integers(0, 40, size=(number, 6)) + 5 * (np.arange(number)[:, None] % 2)
        lines = [" ".join(f"w{word}" for word in of_text) for of_text in words]
        lines = [f"{text},{'good' if row % 2 else 'bad'}" for row, text in enumerate(lines)]
        (folder / f"{split}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    official = {"name": "official", "tasks": [OFFICIAL_TASK], "methods": ["classic.lsa"]}
    design = {**OFFICIAL, "num_subsamples": NUM_SUBSAMPLES}
    (folder / "official.yaml").write_text(yaml.safe_dump({**official, "design": design}))
    for name, column in (("accuracies", "subsample"), ("my_scores", "seed")):
        lines = [f"task,{column},num_test,base,extra,test"]
        for task in ("news", "reviews"):
            for number in range(20):
                base, extra, test = (rng.binomial(200, chance) / 200 for chance in (0.6, 0.65, 0.66))
                lines.append(f"{task},{number},200,{base},{extra},{test}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    lines = ["seed,base,extra,test", *(f"{seed},65.{seed},71.5,7{seed}.5" for seed in range(10))]
    (folder / "scores.csv").write_text("\n".join(lines) + "\n")
    from doc_snippets import find_snippets  # which needs Sybil

    (example,) = [snippet for snippet in find_snippets(ROOT / "README.md") if snippet.file == "my_experiment.yaml"]
    (folder / example.file).write_text(example.source)
    with chdir(folder):
        pb.run(make_spec(spec, folder=folder / "specs"), progress=False)
    return folder


@pytest.fixture
def readers_folder(supposed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of these files, in which runs from Python are small."""
    folder = tmp_path / "folder"
    shutil.copytree(supposed_folder, folder, symlinks=True)
    (folder / "docs").mkdir(exist_ok=True)  # in which commands write, as in the repository
    design = {**measuring.DESIGN, "num_subsamples": NUM_SUBSAMPLES}
    monkeypatch.setattr(measuring, "DESIGN", design)
    yield folder
    uninstall_modules()
