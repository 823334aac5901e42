"""The results table, the effects paired from it, and the rules that turn intervals into verdicts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
