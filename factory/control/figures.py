"""Pictures for Dagster's pages: a PNG inside markdown, small enough to live in the event log.

What they show is decided in `metadata` (datasets) and `training` (runs). Matplotlib is imported
when a picture is drawn, never when the code location loads.
"""

import base64
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FILL, FAINT = "#1f2933", "#4f7cac", "#d7dde3"
LOG_FROM_RATIO = 30.0
"""Largest over smallest value from which a logarithmic axis shows more than a linear one."""


def histogram(lengths: Sequence[int], *, unit: str) -> str:
    """How long samples are, as markdown; on a logarithmic axis where lengths differ much."""
    positive = [max(1, length) for length in lengths]
    low, high = min(positive), max(positive)
    logarithmic = high / low >= LOG_FROM_RATIO
    figure, axes = _canvas()
    bins = min(40, max(8, round(2 * math.sqrt(len(positive)))))
    edges = _edges(low, high, bins, logarithmic)
    axes.hist(positive, bins=edges, color=FILL, edgecolor="white", lw=0.4)
    if logarithmic:
        axes.set_xscale("log")
    middle = sorted(positive)[len(positive) // 2]
    axes.axvline(middle, color=INK, lw=1, ls=(0, (4, 3)))
    axes.annotate(
        f"median {middle:,}",
        (middle, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, -10),
        textcoords="offset points",
        color=INK,
        fontsize=8,
    )
    axes.set_xlabel(unit, color=INK, fontsize=9)
    axes.set_ylabel("samples", color=INK, fontsize=9)
    axes.xaxis.set_major_formatter(_thousands)
    return _markdown(figure, f"Histogram of {len(positive):,} samples, {low:,} to {high:,} {unit}")


def loss_curve(steps: Sequence[int], losses: Sequence[float]) -> str:
    """Loss by step, as markdown."""
    figure, axes = _canvas()
    axes.plot(steps, losses, color=FILL, lw=1.4)
    for index, offset in ((0, (6, 2)), (-1, (0, 9))):
        axes.plot(steps[index], losses[index], "o", ms=3.5, color=INK)
        axes.annotate(
            f"{losses[index]:.3f}",
            (steps[index], losses[index]),
            xytext=offset,
            textcoords="offset points",
            ha="left" if index == 0 else "right",
            color=INK,
            fontsize=8,
        )
    axes.set_xlabel("optimizer step", color=INK, fontsize=9)
    axes.set_ylabel("loss, nats per token", color=INK, fontsize=9)
    return _markdown(figure, f"Loss from {losses[0]:.3f} to {losses[-1]:.3f} in {steps[-1]} steps")


def _edges(low: int, high: int, bins: int, logarithmic: bool) -> list[float]:
    if low == high:
        return [low - 0.5, high + 0.5]
    if logarithmic:
        start, end = math.log(low), math.log(high)
        return [math.exp(start + (end - start) * i / bins) for i in range(bins)] + [high * 1.0001]
    return [low + (high - low) * i / bins for i in range(bins + 1)]


def _canvas() -> "tuple[Figure, Axes]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 2.5), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8, length=3, color=FAINT)
    axes.grid(axis="y", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _thousands(value: float, _position: float) -> str:
    return f"{value:,.0f}"


def _markdown(figure: "Figure", text: str) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    encoded = base64.b64encode(file.getvalue()).decode("ascii")
    return f"![{text}](data:image/png;base64,{encoded})"
