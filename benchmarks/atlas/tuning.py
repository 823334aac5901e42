"""Measure candidate options on tasks that the atlas does not report, to choose the defaults of methods.

    python benchmarks/atlas/tuning.py FOLDER transductive.centroids unlabeled_weight 0.1 0.3 1
    python benchmarks/atlas/tuning.py FOLDER transductive.class_priors prior_strength 200 400 --encoder --num-train 100
    python benchmarks/atlas/tuning.py FOLDER finetune.tapt pretraining '{learning_rate: 1.0e-3}' --task library \
        --options '{model: builtin:gemma-270m, lora: {}}'

The tasks are docstrings of five installed packages, by subject and by package, and two unbalanced tasks of two classes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
import yaml

import peekbench
from peekbench_docstrings import DocstringOptions
from peekbench_docstrings.extract import extract
from peekbench_docstrings.recipes import Recipe
from peekbench_docstrings.source import locate

MAX_ROWS = 3000
SUBJECTS: dict[str, dict[str, str]] = {
    "networkx": {
        "centrality and links": "algorithms/centrality algorithms/link_analysis algorithms/assortativity "
        "algorithms/communicability_alg",
        "paths, flows and cuts": "algorithms/shortest_paths algorithms/flow algorithms/connectivity "
        "algorithms/components algorithms/traversal",
        "bipartite graphs": "algorithms/bipartite",
        "communities": "algorithms/community",
        "graph classes": "classes",
        "generators": "generators",
        "drawing and files": "drawing readwrite",
        "trees and orders": "algorithms/tree algorithms/dag algorithms/isomorphism",
    },
    "sympy": {
        "algebra and polynomials": "polys algebras solvers simplify",
        "combinatorics and numbers": "combinatorics ntheory crypto discrete",
        "calculus": "integrals series calculus holonomic concrete",
        "physics": "physics",
        "functions": "functions",
        "matrices and tensors": "matrices tensor vector diffgeom",
        "sets, logic and statistics": "stats sets logic geometry assumptions",
        "code and printing": "printing codegen parsing utilities plotting",
    },
    "torch": {
        "compilation": "_inductor _dynamo fx jit _export export",
        "distributed": "distributed multiprocessing",
        "distributions": "distributions",
        "layers": "nn",
        "optimization": "optim autograd amp",
        "quantization": "ao quantization sparse",
        "data and tools": "utils profiler package",
        "exchange format": "onnx",
    },
    "matplotlib": {
        "axes and figures": "axes axis figure gridspec layout_engine spines pyplot",
        "backends": "backends backend_bases backend_managers backend_tools",
        "ticks, scales and dates": "ticker scale dates units category",
        "transforms and projections": "transforms projections path bezier tri",
        "shapes and lines": "collections patches lines markers contour quiver streamplot",
        "colors and images": "colors colorbar cm colorizer image",
        "text and legends": "text font_manager mathtext legend offsetbox textpath texmanager dviread table",
        "widgets and animation": "widgets animation",
    },
    "transformers": {
        "data and tokenizers": "data tokenization_utils_base tokenization_utils_tokenizers tokenization_python "
        "image_processing_utils image_transforms audio_utils image_utils feature_extraction_utils processing_utils "
        "convert_slow_tokenizer video_utils video_processing_utils",
        "generation": "generation cache_utils",
        "pipelines": "pipelines",
        "training": "trainer training_args optimization trainer_utils trainer_callback trainer_pt_utils loss",
        "quantization and integrations": "quantizers integrations",
        "tools": "utils cli testing_utils",
        "models": "modeling_utils configuration_utils masking_utils modeling_outputs modeling_rope_utils",
    },
}
"""Modules of each subject of a package."""


def make_tasks() -> dict[str, pd.DataFrame]:
    """Return the rows of each task: texts and the names of their classes."""
    tasks = {package: _extract(package, subjects) for package, subjects in SUBJECTS.items()}
    is_physics = np.where(tasks["sympy"]["label"] == "physics", "physics", "mathematics")
    library = pd.concat([rows.assign(label=package) for package, rows in tasks.items()])
    tasks |= {
        "library": library.drop_duplicates("text", keep=False),
        "physics": tasks["sympy"].assign(label=is_physics),
        "compiled": tasks["torch"][tasks["torch"]["label"].isin(["compilation", "distributed"])],
    }
    return {
        name: rows.sample(min(len(rows), MAX_ROWS), random_state=0).reset_index(drop=True)
        for name, rows in tasks.items()
    }


def _extract(package: str, subjects: dict[str, str]) -> pd.DataFrame:
    classes = {subject: tuple(modules.split()) for subject, modules in subjects.items()}
    recipe = Recipe(package, package, package, package, license="", instruction="", classes=classes)
    rows = extract(recipe, locate(recipe).root, DocstringOptions())
    return pd.DataFrame({"text": rows.texts, "label": [tuple(classes)[label] for label in rows.labels]})


def _slug(value: str) -> str:
    """Return a value in YAML as a part of a name."""
    return re.sub(r"[^\w.-]+", "_", value).strip("_")


def tune(
    folder: Annotated[Path, typer.Argument(help="Folder of the tasks and of the runs, which are resumed.")],
    method: Annotated[str, typer.Argument(help="Method, such as transductive.centroids.")],
    option: Annotated[str, typer.Argument(help="Its option.")],
    values: Annotated[list[str], typer.Argument(help="Candidates.")],
    encoder: Annotated[bool, typer.Option(help="Use sentence embeddings instead of tf-idf.")] = False,
    options: Annotated[str, typer.Option(help="Other options of the method, in YAML.")] = "{}",
    task: Annotated[list[str] | None, typer.Option(help="Task; repeatable. Default: all.")] = None,
    num_train: Annotated[int, typer.Option(help="Number of train texts.")] = 50,
    num_test: Annotated[int, typer.Option(help="Number of test texts.")] = 200,
    num_subsamples: Annotated[int, typer.Option(help="Number of subsamples.")] = 12,
) -> None:
    """Print boost and bias of each candidate."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in make_tasks().items():
        rows.to_csv(folder / f"{name}.csv", index=False)
    common: dict[str, Any] = yaml.safe_load(options)
    if encoder:
        common["encoder"] = {"model": "builtin:minilm"}
    spec = {
        "name": f"tuning-{method}-{option}-{'encoder' if encoder else 'words'}-{num_train}",
        "seed": 2031,
        "tasks": [
            {
                "name": path.stem,
                "use": "files",
                "options": {"path": str(path.resolve()), "text": "text", "label": "label"},
            }
            for path in sorted(folder.glob("*.csv"))
            if not task or path.stem in task
        ],
        "methods": [
            {"name": f"{option}-{_slug(value)}", "use": method, "options": {**common, option: yaml.safe_load(value)}}
            for value in values
        ],
        "design": {"num_train": num_train, "num_test": num_test, "num_subsamples": num_subsamples},
    }
    path = folder / f"{spec['name']}.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    print(peekbench.run(path, store=path.with_suffix(".sqlite")).report())


if __name__ == "__main__":
    typer.run(tune)
