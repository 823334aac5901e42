"""Computation of several texts in one sequence, without padding."""
