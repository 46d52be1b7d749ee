"""GPU types: what a recipe is checked against."""

from dataclasses import dataclass

from factory.errors import SpecError


@dataclass(frozen=True)
class Gpu:
    """One type of GPU."""

    name: str
    memory_bytes: int
    """All of it, in bytes, as its data sheet says."""

    bf16_flops: float
    """Peak of dense matrix products in bf16, in floating-point operations a second."""


GPUS: dict[str, Gpu] = {
    # NVIDIA's data sheets of the H100 (SXM, NVL) and H200 (SXM); sparsity not counted.
    "h100": Gpu("H100 SXM", 80 * 10**9, 989e12),
    "h100_nvl": Gpu("H100 NVL", 94 * 10**9, 835e12),
    "h200": Gpu("H200 SXM", 141 * 10**9, 989e12),
}


def gpu(name: str) -> Gpu:
    """The GPU of that name.

    Raises:
        SpecError: it is not known, so nothing could be said of it.
    """
    if name not in GPUS:
        raise SpecError(f"No GPU type {name!r}. Known: {', '.join(GPUS)}.")
    return GPUS[name]
