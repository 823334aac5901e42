"""Access to the Hugging Face Hub for plugins that download data or models.

This package is a library. It registers no plugin.
"""
