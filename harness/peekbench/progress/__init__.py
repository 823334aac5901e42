"""Shows the progress of a run: a live display on a terminal, plain lines elsewhere."""
