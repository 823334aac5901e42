"""Language models for plugins: models in memory, packed texts, training and scoring.

This package is a library. It registers no plugin. Each module imports only modules that stand above it in this list.

====================  ====================================================================
Module                Contents
====================  ====================================================================
``types``, ``recipe`` types, records and training hyperparameters; no heavy imports
``options``           options that several methods share; no heavy imports
``installed``         checks that optional libraries are installed
``devices``           devices, CPU threads, determinism and memory
``seeds``             seeds derived from a seed and a purpose
``packing``           layout of texts in one sequence, attention, dropout and checkpointing
``models``            tokenizers, networks, adapters, `LanguageModel` and leases
``training``          training loop, pretraining and training on completions
``scoring``           log-probabilities of sequences and continuations
``sources``           model files: folders, the Hub and built-in models
``checks``            checks that a model exists and is what a method requires
``fit``               steps that fits share: loading, preparing for training, metrics of memory
``provision``         callables that method entries register: pin, prefetch, count tokens
====================  ====================================================================
"""

import logging

# bitsandbytes suggests installing a library that would run code from the Hub.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
