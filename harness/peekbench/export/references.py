"""References that texts about a run cite, as BibTeX."""

REFERENCES_FILE = "references.bib"
_REFERENCES = """\
@software{peekbench,
  title = {peekbench: measuring the bias of adapting to unlabeled test data},
  author = {{The peekbench authors}},
  version = {VERSION},
  year = {YEAR},
  url = {https://github.com/peekbench/peekbench},
}

@inproceedings{dubey2024,
  title = {Evaluating the fairness of task-adaptive pretraining on unlabeled test data before few-shot text
           classification},
  author = {Dubey, Kush},
  booktitle = {Proceedings of the 2nd GenBench Workshop on Generalisation (Benchmarking) in NLP},
  year = {2024},
  pages = {1--26},
  url = {https://arxiv.org/abs/2410.00179},
}
"""


def make_references(version: str, year: int) -> str:
    """Return the references as BibTeX.

    Parameters
    ----------
    version
        Version of peekbench that made the run.
    year
        Year of the run.

    Examples
    --------
    >>> "year = {2026}" in make_references("0.1.0", 2026)
    True
    """
    return _REFERENCES.replace("VERSION", version).replace("YEAR", str(year))
