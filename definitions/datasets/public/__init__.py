"""Datasets that anyone may read."""
