"""How a number is shown."""

from __future__ import annotations

from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["text", "count", "fraction", "difference", "spread", "number", "change", "p_value", "seconds"]
"""How a column is shown: a fraction as per cent, a difference of two fractions as signed percentage points, its spread
(a standard error) as points without a sign, a change (what two other numbers differ by) as it is, with its sign."""
