"""Units: how a number is shown to readers."""

from __future__ import annotations

from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["text", "count", "fraction", "difference", "spread", "number", "change", "p_value", "seconds"]
"""How the values of a column are shown.

'fraction' is shown as a percentage; 'difference', of two fractions, as signed percentage points; 'spread', such as a
standard error of fractions, as percentage points without a sign; 'change', of two other numbers, as a signed number.

Examples
--------
>>> from peekbench.formatting import format_cell
>>> format_cell(0.0123, "fraction"), format_cell(0.0123, "difference"), format_cell(0.0123, "number")
('1.2%', '+1.23', '0.0123')
"""
