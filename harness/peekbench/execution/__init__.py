"""Runs the trials of a spec through an executor and stores the outcomes."""
