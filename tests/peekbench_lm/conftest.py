"""Fixtures for language models, if torch is installed."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is not None:
    from model_fixtures import any_model, encoder, folder, make_embedder, model

    __all__ = ["any_model", "encoder", "folder", "make_embedder", "model"]
