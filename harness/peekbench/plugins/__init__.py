"""Names for plugin authors: the entries that a plugin registers, the protocols of their callables, the hook marker.

A plugin is a module that an entry point of the group `peekbench` names. It has one function per hook of
`peekbench.plugins.entries`, marked with `hookimpl`, which returns entries. This is a complete method plugin:

>>> import numpy as np
>>> from peekbench import MethodEntry, Options, Predictor, hookimpl
>>> class Prior(Options):
...     smoothing: float = 1.0
>>> def prior(unlabeled, train, task, *, options, context):
...     counts = np.bincount(train.labels, minlength=task.num_classes) + options.smoothing
...     return Predictor(lambda texts: np.tile(counts / counts.sum(), (len(texts), 1)))
>>> @hookimpl
... def peekbench_methods():
...     return [MethodEntry(name="prior", options=Prior, method=prior, summary="class frequencies")]

Instead of a function, an entry can name a reference such as ``"my_package.prior:prior"``, which is imported at the
first call. The module that a reference names can then import heavy libraries at its top.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
