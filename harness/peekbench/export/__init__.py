"""Exports a run in formats of other tools: tables, LaTeX, Every Eval Ever, RO-Crate, Croissant.

In all formats, the score of a method is that of the arm extra, which is uncontaminated; the bias is a second, signed
result; the boost is the third. All have their intervals. `formats` has the table of formats, and a module each writes
one of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
