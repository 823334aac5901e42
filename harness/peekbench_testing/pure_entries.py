"""Contract checks of data sources, analyses and report formats, which must return the same in every process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from peekbench.cache import cache_folder
from peekbench.data.dataset_checks import check_dataset, find_absent_class
from peekbench.data.loading import fingerprint, hash_rows
from peekbench.errors import ContractError, PeekbenchError, ResultsError, SpecError
from peekbench.formatting import pluralize
from peekbench.plugins.entries import AnalyzerEntry, DataSourceEntry, ReportFormatEntry
from peekbench.plugins.protocols import Options
from peekbench.plugins.registry import find_format
from peekbench.records.data import Dataset, Folders
from peekbench.records.report import Analysis, Report
from peekbench.report.render.files import list_files, write_format
from peekbench.spec.components import AnalysisSpec, TaskSpec, make_component
from peekbench_testing.fresh_process import call
from peekbench_testing.runner import Checks, Memo
from peekbench_testing.samples import SamplePredictions, sample_report, sample_results

if TYPE_CHECKING:
    import pandas as pd

NUM_SUBSAMPLES = 8  # of each task of the synthetic results


@dataclass(frozen=True, slots=True)
class PureCall:
    """A call of a plugin's function, whose result must be the same for every call."""

    use: str
    """Name of the entry in specs."""
    function: Callable[..., Any]
    """Function at the top level of a module that calls that of the entry and checks what it returns."""
    arguments: tuple[Any, ...]
    """Arguments of the function, which can be pickled; the first one is the entry."""
    remedy: str
    """How to return the same at every call."""
    describe: Callable[[Any], str] = repr
    """Function of the result, whose return values are compared."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """The result, which several checks use."""

    @property
    def entry(self) -> Any:
        """Entry that is checked."""
        return self.arguments[0]

    def value(self) -> Any:
        """Return the result of the first call; the function is called once."""
        return self.memo.share("value", partial(self.function, *self.arguments))


def check_value(subject: PureCall) -> None:
    """Check that the function works."""
    subject.value()


def check_repeated(subject: PureCall) -> None:
    """Check that a second call, and one in a new process, with other hashes of texts, return the same."""
    first = subject.describe(subject.value())
    arguments = subject.describe, subject.function, *subject.arguments
    if _describe(*arguments) != first:
        raise ContractError(f"the second call gives another result; {subject.remedy}")
    if call(subject.use, _describe, *arguments) != first:
        raise ContractError(
            "another process gives another result; do not use `hash`, the order of a set, the process id or the time; "
            f"{subject.remedy}"
        )


def _describe(describe: Callable[[Any], str], function: Callable[..., Any], *arguments: Any) -> str:
    return describe(function(*arguments))


# Data sources


@contextmanager
def source_to_check(use: str, options: Mapping[str, Any], _: None) -> Iterator[PureCall]:
    """Make a call of a data source."""
    spec = make_component(TaskSpec, use, options)
    yield make_source_call(spec.use, spec.entry, spec.options, Folders(spec=Path.cwd(), cache=cache_folder()))


def make_source_call(use: str, entry: DataSourceEntry, options: Options, folders: Folders) -> PureCall:
    """Make a call of a data source."""
    remedy = "sort the rows and use a fixed seed"
    return PureCall(use, _load, (entry, options, folders), remedy, _hash_dataset)


def _load(entry: DataSourceEntry, options: Options, folders: Folders) -> Dataset:
    dataset = entry.load(options=options, folders=folders)
    if not isinstance(dataset, Dataset):
        raise ContractError(f"it returned a {type(dataset).__name__}; return peekbench.Dataset")
    return dataset


def _hash_dataset(dataset: Dataset) -> str:
    facts = dataset.kind, dataset.instruction, fingerprint(dataset), list(dataset.splits), list(dataset.groups)
    return f"{hash_rows(dataset.inputs, dataset.labels, dataset.class_names)} {facts}"


def check_rows(source: PureCall) -> str | None:
    """Check that a data source returns valid rows. Return a warning about empty texts."""
    dataset = source.value()
    check_dataset(dataset, source.use)
    if absent := find_absent_class(dataset):
        raise ContractError(absent)
    empty = [row for row, text in enumerate(dataset.inputs) if isinstance(text, str) and not text.strip()]
    return f"warning: {pluralize(len(empty), 'empty text')}, the first in row {empty[0]}" if empty else None


def check_facts(source: PureCall) -> None:
    """Check that the facts of an entry agree with its rows, if it has facts."""
    if source.entry.facts is None:
        return
    dataset, facts = source.value(), source.entry.facts(source.arguments[-1])
    for name, known, actual in (
        ("num_classes", facts.num_classes, len(dataset.class_names)),
        ("num_rows", facts.num_rows, len(dataset.labels)),
        ("class_names", facts.class_names or None, tuple(dataset.class_names)),
        ("instruction", facts.instruction or None, dataset.instruction),
    ):
        if known is not None and known != actual:
            raise ContractError(f"facts.{name} is {known!r}, but the rows have {actual!r}; correct the facts")


SOURCE_CHECKS: Checks = {
    "the rows are valid": check_rows,
    "facts agree with the rows": check_facts,
    "same rows in every process": check_repeated,
}


# Analyses


@contextmanager
def analysis_to_check(use: str, options: Mapping[str, Any], results: pd.DataFrame | None) -> Iterator[PureCall]:
    """Make a call of an analysis of a results table."""
    spec = make_component(AnalysisSpec, use, options)
    yield make_analysis_call(spec.use, spec.entry, spec.options, results)


def make_analysis_call(
    use: str, entry: AnalyzerEntry, options: Options, results: pd.DataFrame | None = None
) -> PureCall:
    """Make a call of an analysis; by default of synthetic results."""
    results = sample_results(NUM_SUBSAMPLES) if results is None else results
    return PureCall(use, _analyze, (entry, options, results), "take the seed from the options")


def _analyze(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> Analysis:
    from peekbench.results.analyze import Seen  # noqa: PLC0415 - it imports pandas

    predictions = SamplePredictions(int(results["subsample"].nunique())) if entry.sees_predictions else None
    copy = results.copy(deep=True)
    analysis = _check_analysis(entry.analyze(copy, options=options, **Seen(predictions=predictions).keywords(entry)))
    if not copy.equals(results):
        raise ContractError("it changes the results table; work on a copy")
    return analysis


def _check_analysis(analysis: Analysis) -> Analysis:
    """Refuse what is no `Analysis`, and tables in which a row has another number of cells than there are columns."""
    if not isinstance(analysis, Analysis):
        raise ContractError(f"it returned a {type(analysis).__name__}; return peekbench.Analysis")
    for table in analysis.tables:
        for number, row in enumerate(table.rows):
            if len(row) != len(table.columns):
                raise ContractError(
                    f"table {table.title!r}, row {number} has {len(row)} cells for {len(table.columns)} columns; give "
                    "one for each, and None for missing values"
                )
    return analysis


def check_designs(analysis: PureCall) -> None:
    """Check that an analysis supports other designs, or refuses them with an error that users understand."""
    entry, options, _ = analysis.arguments
    for name, results in (
        ("without a base arm", sample_results(NUM_SUBSAMPLES, arms=("extra", "test"))),
        ("with a single subsample", sample_results(1)),
        ("with a single task", sample_results(NUM_SUBSAMPLES, num_tasks=1)),
    ):
        try:
            _analyze(entry, options, results)
        except (ResultsError, SpecError):  # the design does not suffice, and the message says so
            continue
        except Exception as error:
            raise ContractError(
                f"with a design {name}, it raised {type(error).__name__}: {error}; return what is possible with a "
                "warning, or raise peekbench.errors.ResultsError"
            ) from error


ANALYSIS_CHECKS: Checks = {
    "returns an analysis and leaves the results unchanged": check_value,
    "other designs are analyzed or refused": check_designs,
    "same analysis in every process": check_repeated,
}


# Report formats


@contextmanager
def format_to_check(use: str, options: Mapping[str, Any], _: None) -> Iterator[PureCall]:
    """Make a call of a report format with a report that has all parts."""
    if options:
        raise SpecError(f"{use} is a report format, which has no options; omit them")
    yield PureCall(use, _write, (find_format(use), use, sample_report()), "use nothing but the report")


def _write(entry: ReportFormatEntry, use: str, report: Report) -> list[tuple[str, bytes]]:
    """Let a format write a report, and return the names and the contents of its files."""
    with TemporaryDirectory() as folder:
        write_format(use, entry, report, Path(folder) / f"report{entry.suffix}")
        return [(name.as_posix(), (Path(folder) / name).read_bytes()) for name in list_files(Path(folder))]


def check_reports(written: PureCall) -> None:
    """Check that a format writes a report with all parts, does not change it, and writes or refuses an empty one."""
    written.value()
    entry, use, report = written.arguments
    if report != sample_report():
        raise ContractError("it changes the report; work on a copy")
    try:
        _write(entry, use, Report("empty", "no results"))
    except ContractError:
        raise
    except PeekbenchError:
        pass  # a format of runs, which a report without one lacks


FORMAT_CHECKS: Checks = {
    "writes reports with all parts and with none": check_reports,
    "same files in every process": check_repeated,
}
