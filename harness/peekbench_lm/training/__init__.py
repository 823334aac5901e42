"""Training of language models: the loop, optimizers and objectives."""
