"""Loads, checks, samples and describes the rows of tasks.

Data source plugins use `group_duplicates`, `keep_first`, `hash_rows`, and for labels `label_key`, `find_missing`,
`refuse_missing` and `name_classes`; methods that prompt language models use
`frame_prompt` and `render_prompt`.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
