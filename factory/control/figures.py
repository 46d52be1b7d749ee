"""Pictures for Dagster's pages: a PNG inside markdown, small enough to live in the event log.

What they show is decided in `card_page` (datasets) and `training` (runs). Matplotlib is imported
when a picture is drawn, never when the code location loads.
"""

import base64
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from factory.data.bins import EDGES, Bins
from factory.reports import RealizedMix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FILL, FAINT = "#1f2933", "#4f7cac", "#d7dde3"
SHORTEST = 0.5
"""Where samples of length 0 lie on a logarithmic axis, which has no 0."""

FEW_TICKS_FROM_RATIO = 1_000
"""Largest over smallest length from which the axis names powers of ten only."""

MANY_TICKS_BELOW_RATIO = 8


def lengths(bins: Bins, *, unit: str) -> str:
    """How long samples are, as markdown, on a logarithmic axis; empty where there are none."""
    if not bins.count:
        return ""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = _canvas()
    first, last = min(bins.counts), max(bins.counts)
    edges = [max(EDGES[index], SHORTEST) for index in range(first, last + 2)]
    counts = [bins.counts[index] for index in range(first, last + 1)]
    axes.stairs(counts, edges, fill=True, color=FILL)
    axes.vlines(edges[1:-1], 0, counts[1:], color="white", lw=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=_named(edges[-1] / edges[0])))
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(_thousands))
    middle = max(bins.quantile(0.5), SHORTEST)
    axes.axvline(middle, color=INK, lw=1, ls=(0, (4, 3)))
    right = middle > math.sqrt(edges[0] * edges[-1])
    axes.annotate(
        f"median {middle:,.0f}",
        (middle, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if right else 4, 3),
        textcoords="offset points",
        ha="right" if right else "left",
        color=INK,
        fontsize=8,
    )
    axes.set_xlabel(unit, color=INK, fontsize=9)
    axes.set_ylabel("samples", color=INK, fontsize=9)
    return _markdown(
        figure, f"Histogram of {bins.count:,} samples, {bins.least:,} to {bins.most:,} {unit}"
    )


def _named(ratio: float) -> tuple[float, ...]:
    """Which digits of a decade are named, on an axis of so much from end to end."""
    if ratio >= FEW_TICKS_FROM_RATIO:
        return (1.0,)
    return (1.0, 2.0, 5.0) if ratio >= MANY_TICKS_BELOW_RATIO else tuple(map(float, range(1, 10)))


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


def mixture(mix: RealizedMix) -> str:
    """What a run has seen beside what its mix declares, as markdown."""
    from factory.observe.mixture import figure

    return _markdown(figure.draw(mix), f"Mixture {mix.mix} up to step {mix.step:,}")


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
