"""Writes the files of a new plugin: an installable, typed and tested distribution with one entry."""
