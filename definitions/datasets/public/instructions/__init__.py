"""Public instructions and their answers."""
