"""Numbers printed in the study (arXiv 2410.00179) and its notebooks, and numbers of other fits of its data."""

from __future__ import annotations

SIZES = (50, 100, 200, 500)
# Table 1, in points: boost and bias by number of train texts, model and n.
TABLE_1 = {
    (50, "bert", "boost"): ("4.1", "3.9", "3.9", "3.5"),
    (50, "bert", "bias"): ("0.19", "0.18", "-0.39", "0.48"),
    (50, "gpt2", "boost"): ("3.8", "4.1", "4.4", "4.6"),
    (50, "gpt2", "bias"): ("0.18", "0.11", "-0.05", "-0.08"),
    (100, "bert", "boost"): ("6.2", "6.1", "4.1", "6.1"),
    (100, "bert", "bias"): ("-0.08", "-0.37", "0.33", "-0.16"),
    (100, "gpt2", "boost"): ("2.2", "2.5", "6.3", "3.9"),
    (100, "gpt2", "bias"): ("-0.05", "0.03", "-0.01", "-0.21"),
}
# Section 4: evaluated models and training runs of the few-shot experiment.
EVALUATED_MODELS, TRAINING_RUNS = 81_000, 135_000
# Published code: counts of the few-shot experiment that are one too low, for both numbers of train texts.
TRUNCATED = 2_652
# Published notebooks: mean and sd in log-odds, of the model with slopes by task, m=100.
NOTEBOOKS = {
    ("few-shot, n=500", "bias"): ("-0.0081", "0.0116"),
    ("few-shot, n=500", "boost"): ("0.2745", "0.0514"),
    ("zero-shot, n=100", "bias"): ("0.003", "0.023"),
    ("zero-shot, n=100", "boost"): ("0.313", "0.130"),
}
# MCMC with bambi 0.17 for the study's formulas and truncated counts: mean and 89% interval of the bias in log-odds.
SAMPLED = {
    ("paper", 50): "-0.0039 [-0.014, 0.007]",
    ("paper", 100): "-0.0088 [-0.016, -0.002]",
    ("paper", 200): "0.0077 [0.0005, 0.015]",
    ("paper", 500): "-0.0094 [-0.017, -0.002]",
    ("random_slopes", 50): "-0.0039 [-0.015, 0.007]",
    ("random_slopes", 100): "-0.0089 [-0.018, 0.0005]",
    ("random_slopes", 200): "0.0066 [-0.005, 0.018]",
    ("random_slopes", 500): "-0.0081 [-0.026, 0.010]",
}
# The same for 400 data sets without bias at n=500: share of intervals that contain zero.
SAMPLED_COVERAGE = {"paper": "45%", "random_slopes": "91%"}
# Section 10: share of slices whose posterior mean is outside the region, and the region in log-odds.
SHARES = {"few-shot, n=500": ("47%", "0.04"), "zero-shot, n=100": ("49%", "0.07")}
RAFT_ODDS_RATIO = 1.03
# Appendix G: bias in R^2 with 1.96 standard errors, from a scikit-learn loop on the study's data sets.
RANKS, PCA_SIZES = (5, 10, 15, 20), (25, 50, 100, 200, 500)
PCA = {
    5: (".083 ± .015", ".084 ± .007", ".027 ± .005", ".013 ± .007", ".007 ± .003"),
    10: (".136 ± .012", ".127 ± .011", ".070 ± .009", ".019 ± .005", ".006 ± .004"),
    15: (".266 ± .011", ".174 ± .010", ".112 ± .011", ".035 ± .005", ".027 ± .006"),
    20: (".321 ± .010", ".222 ± .010", ".139 ± .010", ".085 ± .007", ".047 ± .010"),
}
