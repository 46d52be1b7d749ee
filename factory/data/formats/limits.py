"""Limits: how much one row, one file or one archive may ask of the memory before it is refused."""

LARGEST_ROW = 2**28
"""Bytes or characters of one line, item or cell: 256 MiB."""

LARGEST_FILE = 2**31
"""Bytes of a file that is a row, or that can only be read as a whole: 2 GiB."""

LARGEST_UNPACKED = 2**40
"""Bytes that one compressed file or archive may become: 1 TiB."""

RATIO_FROM = 2**26
"""Bytes from which on the ratio of unpacked to packed is looked at: short files of blanks pack
well."""
