"""Records that flow through peekbench: frozen, slotted dataclasses with almost no behavior.

`data` describes tasks, their rows and tables of scores, `trials` the work and its outcomes, `runs` looks, machines and
the events that observers of a run receive, `scores` the scores of an arm, `verdicts` the conclusions of analyses,
`figures` the figures to draw, and `report` the results of analyses and the report. Accuracies and other scores are
fractions; times are in seconds. Only `scores` imports numpy at run time, and names are imported on first use, so that
reading a spec stays fast.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
