"""Formats: one module per way in which a file holds rows, or holds other files.

`reader` is the entry. `compression` and `archives` make streams of bytes, `encoding` makes text of
them, `xml`, `json`, `delimited`, `parquet` and `whole` make rows.
"""
