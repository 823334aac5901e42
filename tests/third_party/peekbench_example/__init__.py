"""A method, a data source, an analysis, an audit, an executor and a renderer for peekbench."""
