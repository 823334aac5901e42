"""Loads, checks, samples and describes the rows of tasks.

Data source plugins use `group_duplicates`, `keep_first` and `hash_rows`; methods that prompt language models use
`frame_prompt` and `render_prompt`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
