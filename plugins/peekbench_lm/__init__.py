"""What the plugins on language models share: models in memory, texts end to end without padding, the training loop.

It is a library and registers nothing.
"""
