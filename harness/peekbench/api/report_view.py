"""Reports in Python: verdicts, tables as data frames, figures on axes of matplotlib, and their display in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import pandas as pd

from peekbench.errors import PeekbenchError, public
from peekbench.records.figures import Figure
from peekbench.records.report import Report, Table
from peekbench.report.render.advice import Answer
from peekbench.report.render.content import Findings, Paragraph, lay_out
from peekbench.report.render.files import write_report
from peekbench.report.render.html import render_notebook
from peekbench.report.render.pictures import alt_text, make_renderer


class TableView:
    """A table of a report.

    Parameters
    ----------
    table
        The table.

    Examples
    --------
    >>> from peekbench import Column, Table
    >>> table = TableView(Table("Mean bias", (Column("task"), Column("bias", "difference")), (("tickets", 0.012),)))
    >>> table.to_pandas()
          task   bias
    0  tickets  0.012
    """

    def __init__(self, table: Table) -> None:
        self.record = table
        """The table as a record, with the units of its columns."""
        self.title = table.title
        """Title of the table."""
        self.note = table.note
        """What readers need to interpret the table; can be empty."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame with numbers in full precision.

        Scores and differences are fractions. The limits of the interval of `bias` are `bias, low` and `bias, high`.
        """
        names, rows = self.record.spread()
        return pd.DataFrame(rows, columns=names)

    def __repr__(self) -> str:
        """Return the title and the size."""
        return f"<table {self.title!r}: {len(self.record.rows)} rows, {len(self.record.columns)} columns>"


class Tables(Sequence[TableView]):
    """The tables of a report, by position or by words of their titles.

    Parameters
    ----------
    tables
        Tables in the order of the report.

    Examples
    --------
    >>> from peekbench import Table
    >>> tables = Tables([Table("Mean bias by task", (), ()), Table("Methods", (), ())])
    >>> tables["bias"].title
    'Mean bias by task'
    >>> tables.titles
    ['Mean bias by task', 'Methods']
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = [TableView(table) for table in tables]
        self.titles = [table.title for table in tables]
        """Titles of all tables."""

    @overload
    def __getitem__(self, key: int | str) -> TableView: ...

    @overload
    def __getitem__(self, key: slice) -> list[TableView]: ...

    def __getitem__(self, key: int | str | slice) -> TableView | list[TableView]:
        """Return a table by its position, or the first one whose title is or contains the words.

        Raises
        ------
        PeekbenchError
            If no title contains all words.
        IndexError
            If there are fewer tables.
        """
        if not isinstance(key, str):
            return self._tables[key]
        wanted = key.lower()
        for table in self._tables:
            if table.title.lower() == wanted:
                return table
        for table in self._tables:
            if all(word in table.title.lower() for word in wanted.split()):
                return table
        raise PeekbenchError(f"no table has the title {key!r}; the titles are: {'; '.join(self.titles) or 'none'}")

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self._tables)

    def __repr__(self) -> str:
        """Return the titles, one a line."""
        return "\n".join(f"{number}: {title}" for number, title in enumerate(self.titles))


class FigureView:
    """A figure of a report.

    Parameters
    ----------
    figure
        The figure.
    renderer
        Renderer that draws it, as `plugin.thing`; empty for the default one.

    Examples
    --------
    >>> from peekbench.records import Forest, Interval
    >>> figure = FigureView(Forest("Bias by task", (("lsa", (Interval("tickets", 0.012, -0.004, 0.028),)),)))
    >>> figure.title
    'Bias by task'
    """

    def __init__(self, figure: Figure, renderer: str = "") -> None:
        self.record = figure
        """The figure as a record with all numbers; see `peekbench.records`."""
        self.title = figure.title
        """Title of the figure."""
        self._renderer = renderer

    def __repr__(self) -> str:
        """Return the kind and the title."""
        return f"<figure {self.title!r}: {self.record.kind}>"

    def _repr_html_(self) -> str | None:
        try:
            picture = make_renderer(self._renderer)(self.record, "svg").decode()
            return picture[picture.index("<svg") :]  # without the declaration of an XML file
        except PeekbenchError:  # the text names the figure
            return None

    def __str__(self) -> str:
        """Return the content of the figure in a sentence."""
        return alt_text(self.record)


class ReportView:
    """A report in Python. In a notebook, it shows its verdicts and figures.

    `peekbench.analyze` and `Run.report` return it.

    Parameters
    ----------
    report
        The content of the report.

    Examples
    --------
    >>> import pandas as pd, peekbench as pb
    >>> extra, test = [0.70, 0.71, 0.69, 0.70, 0.72, 0.71, 0.70], [0.75, 0.77, 0.74, 0.75, 0.77, 0.75, 0.76]
    >>> scores = pd.DataFrame({"task": "news", "extra": extra, "test": test})
    >>> report = pb.analyze(scores)
    >>> report.verdicts[0].decision
    'biased up'
    >>> report.tables["by task"].to_pandas()["bias"].round(3).tolist()
    [0.051]
    """

    def __init__(self, report: Report) -> None:
        self.document = report
        """The whole content as a record."""
        self.name = report.name
        """Name of the report."""
        self.verdicts = report.verdicts
        """Verdicts in the order of the report, controls included."""
        self.warnings = report.warnings
        """Facts that weaken the conclusions."""
        self.tables = Tables(report.tables)
        """Tables, by position or by words of their titles: `report.tables["bias"].to_pandas()`."""
        self.figures = tuple(FigureView(figure, report.renderer) for figure in report.figures)
        """Figures: a notebook shows `report.figures[0]`."""

    @public
    def save(self, folder: str | Path, formats: Sequence[str] | None = None) -> list[Path]:
        """Write the files of the report, such as `report.html`, into a folder, and return their paths.

        Parameters
        ----------
        folder
            Folder of the files; it is created. Files of an earlier report are replaced.
        formats
            'html', 'markdown', 'json', 'svg', 'png' and formats of plugins, such as 'exports.latex'; by default those
            that the spec names, or else the first three.

        Raises
        ------
        PeekbenchError
            If the folder cannot be written.
        """
        return write_report(self.document, folder, formats)

    def __repr__(self) -> str:
        """Return the first lines of the report, each verdict in a line, and the warnings."""
        content = lay_out(self.document)
        lines = [f"{content.name}: {content.headline}"]
        for block in (block for part in content.parts for block in part.blocks):
            if isinstance(block, Answer):
                lines.append(" ".join(filter(None, (f"{block.question}:", block.text, block.command))))
            elif isinstance(block, Findings):
                lines += [f"{one.decision}: {one.verdict.method}: {one.summary}" for one in block.findings]
            elif isinstance(block, Paragraph) and block.is_warning:
                lines.append(f"Warning: {block.text}")
        return "\n".join(lines).replace("?:", "?")

    def _repr_html_(self) -> str:
        return render_notebook(self.document)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}
