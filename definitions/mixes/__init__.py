"""Mixes: one file each; the file's name is the mix's name."""
