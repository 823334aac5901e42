"""The gallery: reports of small experiments, which are run when the site is built."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from website.reference.markdown import page, plain
from website.staging import ROOT

INPUTS = Path("website") / "gallery"


class GalleryError(Exception):
    """A command of the gallery that failed."""


@dataclass(frozen=True, slots=True)
class Example:
    """A report of the gallery."""

    report: str
    """Folder of the report in `reports/`."""
    title: str
    summary: str
    """What the report shows, as Markdown."""
    command: str
    """Command that makes the report, run in a folder with the repository's `website/gallery`."""
    figure: str = ""
    """Picture of the report to show, with its alternative text after a space."""
    needs_run: bool = False
    """Whether the command uses the run of another example."""


EXAMPLES = (
    Example(
        "methods",
        "Methods and controls",
        "Two methods on texts, with a negative and a positive control. With ten subsamples per task, the intervals are "
        "wide; the [quickstart](quickstart.md) uses more.",
        "peekbench run website/gallery/methods.yaml",
        "01-bias-by-task.svg Bias of each method by task, with intervals",
    ),
    Example(
        "doses",
        "Share of test rows",
        "Methods on tabular data, with half of the unlabeled rows from the test set in a fourth arm: how the bias "
        "grows with the share of test rows.",
        "peekbench run website/gallery/doses.yaml",
        "02-dose-response.svg Bias by the share of test rows among the unlabeled rows",
    ),
    Example(
        "language_models",
        "Language modeling",
        "Byte n-grams, scored in bits per byte. Counting the test texts is counting the answers, so the bias is large.",
        "peekbench run website/gallery/language_models.yaml",
        "01-bias-by-task.svg Bias of each method by task, with intervals",
    ),
    Example(
        "scores",
        "Your own scores",
        "A table of scores from another tool. These are simulated: the bias of `lsa` is 0, that of `tapt` is two "
        "points.",
        "peekbench analyze website/gallery/scores.csv --spec website/gallery/scores.yaml --reports reports",
        "01-bias-by-task.svg Bias of each method by task, with intervals",
    ),
    Example(
        "leaderboard-of-methods",
        "Leaderboard",
        "The methods of the first report, ranked by their uncontaminated score.",
        "peekbench leaderboard methods --reports reports",
        needs_run=True,
    ),
)


def run_examples(work: Path) -> None:
    """Run the commands of all examples.

    Parameters
    ----------
    work
        Folder in which they run; what is there is deleted.

    Raises
    ------
    GalleryError
        If a command fails.
    """
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / INPUTS, work / INPUTS)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for needs_run in (False, True):
            commands = [example.command for example in EXAMPLES if example.needs_run == needs_run]
            list(pool.map(lambda command: _run(command, work), commands))


def _run(command: str, work: Path) -> None:
    program, *arguments = shlex.split(command)
    words = [sys.executable, "-m", program, *arguments, "--quiet"]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise GalleryError(f"{command} ended with status {done.returncode}: {done.stdout}{done.stderr}")


def write_gallery(source: Path, work: Path) -> None:
    """Write the page of the gallery and copy its reports.

    Parameters
    ----------
    source
        Folder of the staged pages.
    work
        Folder in which the commands have run.
    """
    reports = source / "gallery"
    reports.mkdir(exist_ok=True)
    for example in EXAMPLES:
        folder = work / "reports" / example.report
        shutil.copy(folder / "report.html", reports / f"{example.report}.html")
        if example.figure:
            shutil.copy(folder / "figures" / example.figure.partition(" ")[0], reports / f"{example.report}.svg")
    text = page(
        "Gallery of reports",
        "Each report is one HTML file without links to other files. The commands below made them from the files in "
        "[website/gallery](https://github.com/peekbench/peekbench/tree/main/website/gallery) when this site was built. "
        "[Reports](report.md) explains their parts.",
        *(part for example in EXAMPLES for part in _section(example, work)),
    )
    (source / "gallery.md").write_text(text, encoding="utf-8")


def _section(example: Example, work: Path) -> Iterator[str]:
    yield f"## {example.title}"
    yield f"{example.summary} [Open the report](gallery/{example.report}.html)."
    if example.figure:
        yield f"![{example.figure.partition(' ')[2]}](gallery/{example.report}.svg)"
    report = json.loads((work / "reports" / example.report / "report.json").read_text(encoding="utf-8"))
    sentences = [verdict["sentence"].partition(";")[0] for verdict in report["verdicts"] if not verdict["control"]]
    yield "\n".join(f"- {plain(sentence).rstrip('.')}." for sentence in dict.fromkeys(sentences))
    yield f"```sh\n{example.command}\n```"
