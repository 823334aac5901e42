"""Lays out tables in the width of a terminal: long texts are wrapped, and wide tables are split into panels."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from peekbench.records.analysis import Table
from peekbench.report.render.cells import FoldedColumn, FoldedTable, fold_intervals
from peekbench.report.render.wrapping import wrap

GAP = 3  # characters between columns
MAX_TEXT_WIDTH = 26  # of a column of wrapped texts, where a table does not fit otherwise
MIN_TEXT_WIDTH, MIN_CROWDED_WIDTH = 20, 8  # of the first columns; the second only if numbers would not fit otherwise


def format_table(
    table: Table, width: int, max_rows: int | None = None, *, min_key_width: int | None = None
) -> Iterator[RichTable]:
    """Yield the panels of a table, each with the columns that identify a row.

    Parameters
    ----------
    table
        Table to lay out.
    width
        Characters of a line.
    max_rows
        Rows to show; the widths of columns take the other rows into account too.
    min_key_width
        Wrap the texts that identify a row as narrowly as this if that avoids a second panel.
    """
    folded = fold_intervals(table)
    cells = [[cell.text for cell in row] for row in folded.rows]
    widths = [_column_widths(column, [row[number] for row in cells]) for number, column in enumerate(folded.columns)]
    full = [full for _, full in widths]
    if sum(full) + GAP * len(full) > width:
        full = [
            narrow if column.is_text else full for (narrow, full), column in zip(widths, folded.columns, strict=True)
        ]
    if min_key_width is not None:
        full = _narrow_keys(folded, full, width, min_key_width)
    for positions in _split_into_panels(folded, full, [narrow for narrow, _ in widths], width):
        panel = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
        fitted = {position: full[position] for position in positions}
        if folded.columns[positions[-1]].is_text:
            fitted[positions[-1]] += max(0, width - sum(full[position] + GAP for position in positions))
        for position in positions:
            # rich would crop a heading rather than wrap it above a column of numbers, so headings are wrapped here.
            panel.add_column(
                Text("\n".join(wrap(folded.columns[position].name, fitted[position])) or " "),
                justify="left" if folded.columns[position].is_text else "right",
                min_width=full[position],
                overflow="fold",
            )
        for row in cells[:max_rows]:
            panel.add_row(*(Text("\n".join(wrap(row[position], fitted[position]))) for position in positions))
        yield panel


def _column_widths(column: FoldedColumn, cells: list[str]) -> tuple[int, int]:
    """Return the width of a column with wrapped cells and the width with cells on one line.

    Words of headings and numbers are never broken. Wrapped, an estimate stands above the ends of its interval.
    """
    longest_word = max(map(cell_len, column.name.split()), default=1)
    longest_cell = max((cell_len(line) for cell in cells for line in cell.splitlines()), default=0)
    parts = (cell_len(part) for cell in cells for part in cell.split())
    narrow = min(longest_cell, MAX_TEXT_WIDTH) if column.is_text else max(parts, default=0)
    return max(longest_word, narrow), max(longest_word, longest_cell)


def _narrow_keys(table: FoldedTable, widths: list[int], width: int, narrowest: int) -> list[int]:
    """Return widths with which all columns fit beside each other, or the given ones if there are none."""
    narrowed = list(widths)
    texts = [position for position in range(table.num_key_columns) if table.columns[position].is_text]
    while (sum(narrowed) + GAP * len(narrowed)) > width:
        widest = max(texts, key=lambda position: narrowed[position], default=None)
        if widest is None or narrowed[widest] <= narrowest:
            return widths
        narrowed[widest] -= 1
    return narrowed


def _split_into_panels(table: FoldedTable, widths: list[int], narrow: list[int], width: int) -> list[list[int]]:
    """Split the columns into groups that fit the width, each with the columns that identify a row.

    If these take more than half of the width, their texts are wrapped more narrowly: `widths` is changed. If any other
    column still does not fit, estimates are wrapped above the ends of their intervals, then texts are wrapped more
    narrowly still, and finally the last counts among the identifying columns appear in one panel only.
    """
    if sum(widths) + GAP * len(widths) <= width:
        return [list(range(len(widths)))]
    keys = list(range(table.num_key_columns))
    texts = [position for position in keys if table.columns[position].is_text]
    while True:
        others = [position for position in range(len(widths)) if position not in keys]
        room = width - sum(widths[position] + GAP for position in keys)
        is_enough = room >= max((widths[position] + GAP for position in others), default=0)
        widest = max(texts, key=lambda position: widths[position], default=None)
        if is_enough and room >= width // 2:
            break
        if widest is not None and widths[widest] > MIN_TEXT_WIDTH:
            widths[widest] -= 1
        elif not is_enough and any(widths[position] > narrow[position] for position in others):
            widths[:] = [min(pair) for pair in zip(widths, narrow, strict=True)]
        elif not is_enough and widest is not None and widths[widest] > MIN_CROWDED_WIDTH:
            widths[widest] -= 1
        elif not is_enough and keys and table.columns[keys[-1]].unit == "count":
            keys.pop()
        else:
            break
    panels: list[list[int]] = [[]]
    used = 0
    for position in others:
        if panels[-1] and used + widths[position] + GAP > room:
            panels.append([])
            used = 0
        panels[-1].append(position)
        used += widths[position] + GAP
    return [[*keys, *panel] for panel in panels]
