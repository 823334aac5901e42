"""Language models in memory: tokenizer, network, weights and adapters."""
