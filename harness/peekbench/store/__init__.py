"""The SQLite file of a run: its spec, finished trials, failures, and provenance."""
