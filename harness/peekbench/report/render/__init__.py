"""Renderers that turn a `Report` record into text, HTML, Markdown, JSON and picture files."""
