"""Contract checks of peekbench as tests of this plugin."""

from __future__ import annotations

from pathlib import Path

from peekbench import Context, Folders, Options, load_dataset, load_results
from peekbench.testing import check_analyzer, check_audit, check_data_source, check_executor, check_method
from peekbench_example import lengths, tickets, win_rate


def test_method() -> None:
    assert [outcome for outcome in check_method("centroid.tfidf", {"max_words": 2}) if not outcome.passed] == []


def test_data_source(tmp_path: Path) -> None:
    (entry,) = tickets.peekbench_data_sources()
    check_data_source(entry, tickets.Tickets(num_rows=30), Folders(spec=tmp_path, cache=tmp_path))


def test_analysis(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("task,subsample,extra,test\na,0,0.5,0.6\na,1,0.7,0.6\nb,0,0.5,0.5\nb,1,0.4,0.8\n")
    (entry,) = win_rate.peekbench_analyzers()
    check_analyzer(entry, win_rate.WinRate(level=0.9), load_results(scores))


def test_audit(tmp_path: Path) -> None:
    (entry,) = lengths.peekbench_audits()
    context = Context(seed=0, threads=1, folders=Folders(spec=tmp_path, cache=tmp_path))
    check_audit(entry, Options(), {"tickets": load_dataset("tickets")}, context)


def test_executor() -> None:
    assert [outcome for outcome in check_executor("backwards") if not outcome.passed] == []
