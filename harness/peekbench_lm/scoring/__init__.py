"""Log-probabilities of sequences and of continuations under causal language models."""
