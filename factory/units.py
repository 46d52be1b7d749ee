"""Units: numbers as a person reads them."""


def size(count_bytes: int) -> str:
    """Bytes in the unit that leaves one to three digits before the point."""
    value = float(count_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
