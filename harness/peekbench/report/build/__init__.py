"""Builds reports: stores, results tables and analyses become `Report` records."""
