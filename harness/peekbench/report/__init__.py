"""Builds reports from stores and analyses, and writes them in every format. Equal input gives equal bytes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
