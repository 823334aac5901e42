"""A method, a data source, an analysis and an executor for peekbench."""
