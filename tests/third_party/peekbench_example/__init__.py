"""A method, a data source, an analysis, an audit, an executor, an observer and a renderer for peekbench."""
