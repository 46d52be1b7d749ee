"""Residual identifiers in a private delivery: a scan that counts and points, and never quotes.

`text` reads text, `dicom` reads headers, `files` a delivered folder, `statement` what the partner
signed for it, `report` says what was found and whether it blocks. Pixels are not read.

A declaration names `Thresholds`, so nothing is imported here: the rules of `text` take a tenth of a
second to compile, Presidio and pydicom longer.
"""
