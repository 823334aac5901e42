"""Sentence encoders for plugins: embeddings of texts, computed once and then taken from a cache.

This package is a library. It registers no plugin. Only `encoder`, an encoder in memory, imports torch.
"""
