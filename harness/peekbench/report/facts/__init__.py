"""Builders that turn stores, results tables and analyses into `Report` records."""
