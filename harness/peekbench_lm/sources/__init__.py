"""Where the files of a language model come from: a folder, the Hub, or training on this machine."""
