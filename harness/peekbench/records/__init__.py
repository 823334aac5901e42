"""Records that flow through peekbench: frozen, slotted dataclasses with almost no behavior.

`data` describes tasks and their rows, `trials` the work and its outcomes, `events` what observers of a run receive,
`analysis` the results of analyses, `figures` the figures to draw, `units` how numbers are shown, and `scores` the
scores of an arm. Accuracies and other scores are fractions; times are in seconds. Only `scores` imports numpy at run
time, and names are imported on first use, so that reading a spec stays fast.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
