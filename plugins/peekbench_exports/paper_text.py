"""A paragraph for the methods section of a paper: design, trials, analyses, verdicts and versions of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from peekbench.formatting import format_cell, format_chosen, format_quantity, format_range, pluralize
from peekbench.records import Report, ScoreEstimate
from peekbench.results import label_configuration
from peekbench_exports.tables import ExportedRun, read_run

PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "gensim", "torch", "transformers", "datasets", "pymc", "bambi",
)  # fmt: skip
CITATION = re.compile(r"<<(\w+)>>")
MAX_NAMED = 12  # tasks or methods that are named, or configurations whose results are stated
REFERENCES_FILE = "references.bib"
REFERENCES = """\
@software{peekbench,
  title = {peekbench: measuring the bias of adapting to unlabeled test data},
  author = {{The peekbench authors}},
  version = {VERSION},
  year = {YEAR},
  url = {https://github.com/peekbench/peekbench},
}

@inproceedings{dubey2024,
  title = {Evaluating the fairness of task-adaptive pretraining on unlabeled test data before few-shot text
           classification},
  author = {Dubey, Kush},
  booktitle = {Proceedings of the 2nd GenBench Workshop on Generalisation (Benchmarking) in NLP},
  year = {2024},
  pages = {1--26},
  url = {https://arxiv.org/abs/2410.00179},
}
"""


def write_paragraph(report: Report, folder: Path) -> None:
    """Write the paragraph on the run of a report as plain text."""
    write_text(read_run(report), folder)


def write_text(run: ExportedRun, folder: Path) -> None:
    """Write the paragraph as plain text, with citations as in Markdown for Pandoc: [@dubey2024]."""
    text = fill_citations("\n\n".join(describe_run(run)), lambda key: f"[@{key}]")
    (folder / "methods.txt").write_text(text + "\n", encoding="utf-8")
    write_references(run, folder)


def write_references(run: ExportedRun, folder: Path) -> None:
    """Write the references that the paragraphs cite."""
    year = datetime.fromisoformat(run.session["started"]).year
    references = REFERENCES.replace("VERSION", run.session["peekbench"]).replace("YEAR", str(year))
    (folder / REFERENCES_FILE).write_text(references, encoding="utf-8")


def fill_citations(text: str, cite: Callable[[str], str]) -> str:
    """Replace the marks of citations in the text of `describe_run`."""
    return CITATION.sub(lambda match: cite(match[1]), text)


def describe_run(run: ExportedRun) -> list[str]:
    """Return paragraphs on the method and on the results. `<<key>>` marks a citation."""
    return [" ".join(_describe_method(run)), " ".join(_describe_results(run))]


def _describe_method(run: ExportedRun) -> Iterator[str]:
    spec, design = run.spec, run.spec["design"]
    rows = next((verdict.rows for verdict in run.content.report.verdicts), "texts")
    is_control = dict(zip(run.content.results["method"], run.content.results["control"] != "", strict=True))
    names = [method["name"] for method in spec["methods"]]
    methods = [name for name in names if not is_control.get(name)]
    controls = [name for name in names if is_control.get(name)]
    yield (
        f"We used peekbench {run.session['peekbench']} <<peekbench>>, which compares fits with and without the test "
        f"{rows} <<dubey2024>>, to measure whether adapting to the unlabeled {rows} of the test set changes the score "
        f"of {_join(methods or controls)}."
    )
    has_labels = any(task.get("kind") != "language_modeling" for task in spec["tasks"])
    shares = ""
    if has_labels and design["train"] != "balanced":
        shares = " with classes at their natural shares"
    tasks = f"{pluralize(len(run.tasks), 'task')} ({_join(run.tasks)})"
    if len(run.tasks) > 1:
        tasks = f"each of {tasks}"
    boost = ""
    if "base" in spec["arms"]:
        boost = ", and the boost is the score of extra minus that of base"
    train = f"{_join_numbers(_list_sizes(run, 'num_train'))} labeled train {rows}{shares}"
    if not has_labels:
        train = f"{_join_numbers(_list_sizes(run, 'num_train'))} train {rows}"
    if design.get("folds"):
        yield from _describe_folds(run, f"From {tasks}, we took {train}", rows)
        yield f"The bias is the score of test minus that of extra{boost}."
    else:
        yield from _describe_sets(run, f"From {tasks}, we drew {_describe_subsamples(spec, rows)} of {train}", rows)
        yield f"The score of extra is uncontaminated; the bias is the score of test minus that of extra{boost}."
    if methods and len(controls) == 1:
        yield f"The run includes the control {_join(controls)}, whose bias is known."
    elif methods and controls:
        yield f"The run includes the controls {_join(controls)}, whose bias is known."
    if design["stop"] is not None:
        yield _describe_looks(run)
    analyses = [f"{analysis['use']} ({run.content.summaries[analysis['use']]})" for analysis in spec["analyses"]]
    yield f"The results were analyzed with {_join(analyses)}."


def _list_sizes(run: ExportedRun, column: str) -> Sequence[int]:
    """Return the sizes of the trials: a spec can leave them to its tasks, or say `all`."""
    return sorted(map(int, run.content.results[column].unique()))


def _describe_sets(run: ExportedRun, drawn: str, rows: str) -> Iterator[str]:
    """Yield sentences on train, test and extra sets, and on what the arms do with them."""
    spec = run.spec
    yield (
        f"{drawn}, {_join_numbers(_list_sizes(run, 'num_test'))} test {rows} and as many extra {rows} from the same "
        f"distribution, without overlap{_describe_groups(run, rows, 'sets')} (seed {spec['seed']})."
    )
    further = ""
    if number := spec["design"].get("num_unlabeled"):
        further = f"; both have further {rows}, {number:,} in all"
    yield (
        f"On each subsample, each method was fitted to the same train {rows} in the arms "
        f"{_join(map(_name_arm, spec['arms']))}: base has no unlabeled {rows}, extra has the extra {rows}, and test "
        f"has the test {rows} without their labels{further}."
    )


def _describe_folds(run: ExportedRun, taken: str, rows: str) -> Iterator[str]:
    """Yield sentences on the folds of the official test split, and on what the arms do with them."""
    spec, folds = run.spec, run.spec["design"]["folds"]
    number, others = _join_numbers(folds), _join_numbers([number - 1 for number in folds])
    sizes = _join_numbers(sorted({facts["splits"]["test"]["rows"] for facts in run.tasks.values()}))
    yield (
        f"{taken}, and the official test split of {sizes} {rows}, in "
        f"{_describe_subsamples(spec, rows, 'random division')} into {number} folds"
        f"{_describe_groups(run, rows, 'folds')} (seed {spec['seed']})."
    )
    private = ""
    if extra := sorted({facts["extra"] for facts in run.tasks.values() if "extra" in facts}):
        private = f", with private {rows} ({_join_numbers(extra)} in all) in the place of the other one"
    whole = ""
    if "all" in spec["arms"]:
        whole = "; all is the score after adapting to the whole test split"
    yield (
        f"On each division, each method was fitted to the same train {rows} in the arms "
        f"{_join(map(_name_arm, spec['arms']))}: base has no unlabeled {rows}; each fit of extra and test adapts to "
        f"{others} of the folds, without their labels{private}, and predicts the whole test split; extra is the score "
        f"on the fold to which a fit did not adapt, test that on the others{whole}."
    )


def _describe_groups(run: ExportedRun, rows: str, sets: str) -> str:
    """Return that groups are kept together, with a comma before it; nothing for tasks without groups."""
    grouped, where = [name for name, facts in run.tasks.items() if "groups" in facts], ""
    if not grouped:
        return ""
    if len(grouped) < len(run.tasks):
        where = f" of {_join(grouped)}"
    return f", and {rows} of the same group{where} were never in two {sets}"


def _name_arm(arm: str | Mapping[str, float]) -> str:
    if isinstance(arm, str):
        return arm
    return "{} {:g}".format(*next(iter(arm.items())))


def _describe_looks(run: ExportedRun) -> str:
    """Return a sentence on the planned looks, and on the one at which the run stopped."""
    planned = f"We planned {pluralize(run.content.num_looks, 'look')} at the results, for which the intervals account"
    if run.content.last_look is None:
        return f"{planned}."
    return f"{planned}; the run ended at look {run.content.last_look}, when all verdicts were settled."


def _describe_results(run: ExportedRun) -> Iterator[str]:
    failures, planned = run.content.report.failures, run.content.num_planned
    analyzed = f"{run.num_analyzed:,} of {pluralize(planned, 'planned trial')} were analyzed"
    if run.is_complete:
        analyzed = f"All {planned:,} planned trials were analyzed"
    if failures:
        analyzed += f"; {pluralize(len(failures), 'trial')} failed"
    yield f"{analyzed}."
    yield from _describe_biases(run)
    packages = run.session.get("versions", run.session["packages"])  # without what no method requires
    versions = [f"{name} {packages[name]}" for name in PACKAGES if name in packages]
    software = _join([f"Python {run.session['python']}", *versions])
    yield f"The run used {software}; its identifier is {run.identifier}."


def _describe_biases(run: ExportedRun) -> Iterator[str]:
    """Yield a sentence on the uncontaminated score and the bias of each configuration."""
    averages = [estimate for estimate in run.estimates if estimate.is_average]
    scores = {estimate.configuration: estimate for estimate in averages if estimate.quantity == "extra"}
    biases = [estimate for estimate in averages if estimate.quantity == "bias"]
    verdicts = [verdict for verdict in run.content.report.verdicts if verdict.effect == "bias"]
    regions = {verdict.region for verdict in verdicts if verdict.region is not None}
    if len(regions) == 1:
        (region,) = regions
        negligible = format_chosen(region, biases[0].units)
        yield (
            f"A method is called equivalent if the interval of its bias lies within {negligible} of 0; otherwise "
            "biased if the interval excludes 0, and inconclusive if it does not."
        )
    family = max((verdict.family.size for verdict in verdicts), default=1)
    if family > 1:
        yield f"These intervals are adjusted for {family} configurations."
    if len(biases) > MAX_NAMED:
        counts = Counter(bias.decision for bias in biases)
        decisions = _join(f"{count} {decision}" for decision, count in counts.most_common())
        yield f"Of {len(biases)} configurations, {decisions}."
        return
    for bias in biases:
        score = scores[bias.configuration]
        unit = score.units.difference
        facts: list[str] = [bias.decision]
        if bias.control:
            facts.insert(0, f"{bias.control} control, ")
        if bias.estimate.has_interval:
            interval = format_range(bias.estimate.low, bias.estimate.high, unit)
            facts.insert(0, f"{bias.estimate.level:.0%} interval {interval}; ")
        sizes = {"num_train": bias.num_train, "num_test": bias.num_test}
        label = label_configuration({"method": bias.method, "model": bias.model, **vary(sizes, biases)})
        yield (
            f"For {label}, the mean {score.metric} of extra was "
            f"{format_cell(score.estimate.mean, score.units.score)}, and the bias was "
            f"{format_quantity(bias.estimate.mean, unit)} ({''.join(facts)})."
        )


def vary(cells: Mapping[str, Any], estimates: Sequence[ScoreEstimate]) -> dict[str, Any]:
    """Return the cells in which the estimates differ."""
    return {name: cell for name, cell in cells.items() if len({getattr(estimate, name) for estimate in estimates}) > 1}


def _describe_subsamples(spec: Mapping[str, Any], rows: str, noun: str = "subsample") -> str:
    number = spec["design"]["num_subsamples"]
    at_most = ""
    if spec["design"]["stop"] is not None:
        at_most = "at most "
    own = {task["name"]: task["num_subsamples"] for task in spec["tasks"] if task.get("num_subsamples")}
    if own and isinstance(number, int):
        by_task = [own.get(task["name"], number) for task in spec["tasks"]]
        if min(by_task) < max(by_task):
            return f"{at_most}{min(by_task):,} to {pluralize(max(by_task), noun)} (by task)"
        number = by_task[0]
    if isinstance(number, int):
        return at_most + pluralize(number, noun)
    return at_most + _join([f"{pluralize(count, noun)} for {size} test {rows}" for size, count in number.items()])


def _join_numbers(numbers: Sequence[int]) -> str:
    return _join([f"{number:,}" for number in numbers], "or")


def _join(names: Iterable[str], word: str = "and") -> str:
    """Return names as a list in words."""
    names = list(names)
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1} others"]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
