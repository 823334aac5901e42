"""Write the scores of runs/quickstart.sqlite as a results table, with which tests compare the docs and new runs.

Usage: python .ci/quickstart_scores.py FILE
"""

from __future__ import annotations

import sys

from peekbench import load_results

COLUMNS = ["task", "method", "num_train", "num_test", "num_scored", "control", "independent_tasks", "subsample"]

results = load_results("runs/quickstart.sqlite")
arms = results.pivot(index=COLUMNS, columns="arm", values="score")[["base", "extra", "test"]]
arms.round(4).to_csv(sys.argv[1])
