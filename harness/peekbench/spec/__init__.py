"""YAML specs: reading, validating and describing errors in them."""
