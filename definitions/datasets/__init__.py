"""Declared datasets: a file's path below this folder is its key."""
