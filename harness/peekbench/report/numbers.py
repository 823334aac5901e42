"""Numbers as a reader expects them."""

from __future__ import annotations

from peekbench.records import Cell, Unit


def shown(value: Cell, unit: Unit) -> str:
    """A cell as text: a fraction as per cent, a difference of fractions as signed percentage points."""
    if value is None:
        return "-"
    if isinstance(value, str | bool):
        return str(value)
    if unit == "text":
        return str(value)
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "fraction":
        return f"{value * 100:.1f}%"
    if unit == "difference":
        return signed(value * 100, 2)
    if unit == "spread":
        return f"{value * 100:.2f}"
    if unit == "p_value":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if unit == "seconds":
        return f"{value:.3f} s" if value < 10 else f"{value:,.0f} s"
    return without_negative_zero(f"{value:.4g}")


def signed(value: float, digits: int) -> str:
    """With its sign; zero has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def without_negative_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not float(text) else text
