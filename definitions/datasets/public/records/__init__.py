"""Public patient records."""
