"""The Python interface: runs, measures and analyzes in one call each, and shows the results in notebooks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
