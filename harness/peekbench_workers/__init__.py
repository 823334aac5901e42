"""Worker processes and the dispatch of work items to them, shared by the executors `local` and `ray`.

    Dispatcher -> Pool -> Slot -> WorkerProcess -> serve (in the worker)

`Dispatcher` decides which items are sent where and which are tried again. A `Pool` has the slots of an executor; a slot
does one batch of items after the other in a `WorkerProcess`, on this machine or on another one.
"""
