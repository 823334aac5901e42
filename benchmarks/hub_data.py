"""Time and memory to load a large task, the first time and in later processes.

The script writes artificial data files with the size and the columns of two tasks to a local mirror. It compares the
first load with reading the file in pyarrow and counting duplicates. Each measurement runs in a new process; the best of
several rounds counts. The script prints times and asserts nothing.

    python benchmarks/hub_data.py [--rows 1400000]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

YAHOO = (
    "Society & Culture", "Science & Mathematics", "Health", "Education & Reference", "Computers & Internet", "Sports",
    "Business & Finance", "Entertainment & Music", "Family & Relationships", "Politics & Government",
)  # fmt: skip
TREC = ("ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM")
ROUNDS = 3
NEWS = ("World", "Sports", "Business", "Sci/Tech")
START = """
import json, sys, time
from pathlib import Path
import pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq
from peekbench import load_dataset
use, mirror, path, *text = sys.argv[1:]
load_dataset("hf.trec", {"data_dir": mirror})  # a small task, so that all modules are imported
started = time.perf_counter()
"""
PLAIN = (
    START
    + """
table = pq.read_table(path)
read = time.perf_counter()
texts = pc.binary_join_element_wise(*(table[name] for name in text), "\\n")
joined = time.perf_counter()
duplicates = len(texts) - pc.count_distinct(texts).as_py()
print(json.dumps([read - started, time.perf_counter() - joined, duplicates]))
"""
)
FIRST = (
    START
    + """
load_dataset(use, {"data_dir": mirror})
print(json.dumps([time.perf_counter() - started]))
"""
)
LATER = """
import json, sys, time
from pathlib import Path
from peekbench import load_dataset
from peekbench.data.sampling import Sampler
from peekbench.execution.arms import take
from peekbench.records import Draw
from peekbench.spec.experiment import parse_spec
spec = parse_spec(json.dumps({"name": "x", "tasks": [{"use": sys.argv[1], "options": {"data_dir": sys.argv[2]}}],
    "methods": ["controls.null"], "design": {"num_train": 100, "num_test": 500, "num_subsamples": 100}}), folder=Path())
started = time.perf_counter()
dataset = load_dataset(spec.source(spec.tasks[0]))
loaded = time.perf_counter()
sampler = Sampler(dataset, spec.design, 1, sys.argv[1])
for number in range(100):
    subsample = sampler.draw(Draw(sys.argv[1], 100, 500, number))
    for rows in (subsample.train, subsample.extra, subsample.test):
        take(dataset.inputs, rows)
drawn = time.perf_counter()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps([loaded - started, drawn - loaded, int(status["VmHWM"].split()[0]) / 1024]))
"""


def sentences(number: int, rng: random.Random) -> list[str]:
    """Make sentences of 5 to 60 words, of which one percent are duplicates."""
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(20_000)]
    texts = [" ".join(rng.choices(words, k=rng.randint(5, 60))) for _ in range(number)]
    texts[-number // 100 :] = texts[: number // 100]
    return texts


def write(path: Path, columns: dict[str, Sequence[object]], label: str, names: Sequence[str]) -> None:
    """Write a Parquet file whose label column is a ClassLabel."""
    path.parent.mkdir(parents=True)
    described = {"info": {"features": {label: {"names": names, "_type": "ClassLabel"}}}}
    table = pa.table(columns).replace_schema_metadata({"huggingface": json.dumps(described)})
    pq.write_table(table, path, compression="zstd")


def measure(use: str, path: Path, rows: int, text: Sequence[str], mirror: Path) -> None:
    """Print the times of the first load and of later loads of one task."""
    cache = mirror / "cache"
    environment = {**os.environ, "PEEKBENCH_CACHE": str(cache)}

    def process(code: str) -> list[float]:
        command = [sys.executable, "-c", code, use, str(mirror), str(path), *text]
        figures: list[float] = json.loads(subprocess.check_output(command, env=environment, text=True))
        return figures

    process(PLAIN)  # fills the page cache
    rounds = []
    for _ in range(ROUNDS):
        shutil.rmtree(cache)
        rounds.append((*process(PLAIN), *process(FIRST)))
    read, counted, duplicates, first = (min(figures) for figures in zip(*rounds, strict=True))
    later = process(LATER)
    kept = sum(file.stat().st_size for file in (cache / "hf").glob(f"{use.removeprefix('hf.')}-*.arrow"))
    print(f"{use}: {rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB, {duplicates:,.0f} duplicates")
    print(f"  pyarrow reads the file in {read:.2f} s and counts duplicates in {counted:.2f} s")
    print(f"  first load          {first:6.2f} s, {first / (read + counted):.2f} times as long   (target: at most 2)")
    print(f"  load in a new process {later[0]:4.2f} s, of {kept / 1e6:,.0f} MB memory-mapped")
    print(f"  100 subsamples      {later[1]:6.2f} s   (target: seconds)")
    print(f"  peak memory of that process {later[2]:.0f} MB   (target: below 200 MB)")


def main() -> None:
    """Write the mirror and measure both tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_400_000, help="rows of the larger task")
    options = parser.parse_args()
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        mirror = Path(folder)
        trec = mirror / "datasets/CogComp/trec/refs@convert@parquet/default/train/0000.parquet"
        few: dict[str, Sequence[object]] = {
            "text": sentences(600, rng),
            "coarse_label": [row % 6 for row in range(600)],
        }
        write(trec, few, "coarse_label", TREC)
        news = mirror / "datasets/fancyzhx/ag_news/main/data/train-00000-of-00001.parquet"
        rows = 100_000
        write(news, {"text": sentences(rows, rng), "label": [row % 4 for row in range(rows)]}, "label", NEWS)
        measure("hf.ag_news", news, rows, ("text",), mirror)
        yahoo = (
            mirror
            / "datasets/community-datasets/yahoo_answers_topics/main/yahoo_answers_topics/train-00000-of-00001.parquet"
        )
        rows = options.rows
        columns: dict[str, Sequence[object]] = {
            "id": range(rows),
            "topic": [row % 10 for row in range(rows)],
            "question_title": sentences(rows, rng),
            "question_content": sentences(rows, rng),
            "best_answer": sentences(rows, rng),
        }
        write(yahoo, columns, "topic", YAHOO)
        del columns
        measure("hf.yahoo_answers_topics", yahoo, rows, ("question_title", "question_content"), mirror)


if __name__ == "__main__":
    main()
