"""Renders reports: a `Report` record becomes bytes."""
