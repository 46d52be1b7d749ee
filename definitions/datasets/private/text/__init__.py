"""Private text."""
