"""The results table, the effects computed from it, and the rules that turn intervals into verdicts.

`load_results` and `tidy` make a results table, `COLUMNS` documents it. `configurations`, `paired_scores` and
`pair_arms` prepare it for analyzers. `decide` is the rule that turns an interval into a verdict.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
