"""What users of scikit-learn hold: estimators as methods, data frames and arrays as tasks, its scores for reports.

A library beside the core, which imports a module of it by name when an estimator, data in memory or such a score is
measured.
"""
