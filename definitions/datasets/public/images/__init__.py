"""Public images."""
