"""Answers about a run, from the files that it wrote. Reads `reports`; never parses logs."""
