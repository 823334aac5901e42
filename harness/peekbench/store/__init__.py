"""One SQLite file per run: the spec, the finished trials, the failures, and the provenance."""
