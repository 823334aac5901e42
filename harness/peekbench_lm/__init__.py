"""What the plugins on language models share: models in memory, texts end to end without padding, the training loop.

It is a library and registers nothing.
"""

import logging

# It warns that it would be quicker with a library that runs code of a hub.
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
