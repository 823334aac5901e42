"""Engine for language models that plugins share: models in memory, packed texts, training and scoring.

This package is a library: it registers no plugin and no spec names it. Methods that predict texts are those of the
plugin `peekbench_text_prediction`, which specs name `lm`. Each module imports only modules that stand above it.

====================  ====================================================================
Module                Contents
====================  ====================================================================
``options``           options, types and training hyperparameters; no heavy imports
``seeds``             seeds derived from a seed and a purpose
``extras``            checks that optional libraries are installed
``defects``           checks of the files of models
``devices``           devices, CPU threads, determinism, memory and micro-batches
``tokenizer``         tokenizers, token ids, kind and context limit of a model
``corpus``            docstrings of installed packages, as training texts
``builtin_models``    the table of built-in models, and models that this machine builds once
``model_files``       files of models: folders, GGUF files, the Hub and built-in models
``provision``         callables that method entries register: check, pin, prefetch, count
``layout``            layout of texts in one sequence, without padding
``forward_context``   context of a forward pass: dropout and gradient checkpointing
``attention``         attention within each text of a packed sequence
``network``           `PackedNetwork`: a network of transformers that computes packed texts
``once``              values of texts that a process computes once
``loading``           networks from files, with weights of 32 or of four bits
``language_model``    `LanguageModel`: head, loss, adapters and copies of weights
``fit``               steps that fits share: leases of models, adapters, metrics of memory
``training_loop``     training loop and optimizers
``pretraining``       masked language modeling, and prediction of the next token
``completions``       training on completions of texts with a common start
``likelihood``        log-probabilities of texts, of windows and of tokens
``continuations``     log-probabilities of several continuations of many texts
``generation``        generated answers: the most probable tokens, or samples
``minilm``, ``nano``  how the built-in models are made
``gguf_files``        conversion of models in GGUF files
``gemma``             how a built-in model is joined and converted
====================  ====================================================================
"""

import logging

# bitsandbytes suggests installing a library that would run code from the Hub.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
