"""Public text."""
