"""YAML specs: reading them, validating them, and describing what is wrong with them."""
