"""Figure: what a run has seen beside what its mix declares, in two panels.

Left, each dataset's share by three ways of counting, over the band in which the declared share may
lie. Right, how often each was seen. Matplotlib is imported when a figure is drawn.
"""

import io
from typing import TYPE_CHECKING, Any

from factory.observe.mixture.plan import MAX_EPOCHS
from factory.reports import RealizedMix, RealizedSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, BAND, LATE = "#1f2933", "#d7dde3", "#f2c14e", "#b3412f"

COUNTED = (
    ("sample", "share_of_samples", "samples", "#9fb8d3"),
    ("token", "share_of_tokens", "tokens", "#4f7cac"),
    ("loss_token", "share_of_loss_tokens", "loss tokens", "#23395b"),
)
"""Basis, field, name and color of the three ways of counting."""

ROLES = {"warmup": "warm-up", "domain_shift": "domain shift", "retention": "retention"}

INCHES_PER_SOURCE, LEAST_INCHES, WIDTH_INCHES = 0.44, 2.6, 10.5
BAR = 0.24
"""Height of a bar, where two datasets are 1 apart."""


def draw(mix: RealizedMix) -> "Figure":
    """The figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    height = max(LEAST_INCHES, 1.3 + INCHES_PER_SOURCE * len(mix.sources))
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained", dpi=100)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.7, 1))
    for axes in (left, right):
        _plain(axes)
    places = range(len(mix.sources))
    left.set_yticks(places, [_name(source) for source in mix.sources])
    left.set_ylim(len(mix.sources) - 0.4, -0.6)
    _shares(left, mix)
    _epochs(right, mix.sources)
    figure.suptitle(_title(mix), color=INK, fontsize=10, x=0.01, ha="left")
    return figure


def svg(mix: RealizedMix) -> bytes:
    """The figure as a file; the same for the same facts."""
    import matplotlib as mpl

    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": mix.mix_lock}):
        draw(mix).savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _shares(axes: "Axes", mix: RealizedMix) -> None:
    declared = {"sample": 0, "token": 1, "loss_token": 2}[mix.basis]
    for at, source in enumerate(mix.sources):
        low, high = source.declared - source.band, source.declared + source.band
        axes.barh(
            at, 100 * (high - max(0.0, low)), 0.86, 100 * max(0.0, low), color=BAND, alpha=0.45
        )
        axes.vlines(100 * source.declared, at - 0.43, at + 0.43, color=INK, lw=1.2)
        for number, (_, field, _, color) in enumerate(COUNTED):
            share = 100 * float(getattr(source, field))
            place = at + (number - 1) * BAR
            axes.barh(place, share, BAR * 0.92, color=color)
            late = number == declared and not source.within
            axes.annotate(
                f"{share:.1f}",
                (share, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=6.5,
                color=LATE if late else INK,
                weight="bold" if late else "normal",
            )
    axes.set_xlim(0, None)
    axes.margins(x=0.08)
    axes.set_xlabel("share, %", color=INK, fontsize=9)
    _legend(axes, mix)


def _legend(axes: "Axes", mix: RealizedMix) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    of = next(name for basis, _, name, _ in COUNTED if basis == mix.basis)
    handles: list[Any] = [Patch(color=color, label=f"of {name}") for _, _, name, color in COUNTED]
    handles += [Line2D([], [], color=INK, lw=1.2, label=f"declared, of {of}")]
    handles += [Patch(color=BAND, alpha=0.45, label="left to chance")]
    axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=5,
        fontsize=7,
        frameon=False,
        columnspacing=1.2,
        handlelength=1.2,
    )


def _epochs(axes: "Axes", sources: tuple[RealizedSource, ...]) -> None:
    """Dots on a logarithmic axis: datasets differ a hundredfold in how often they are seen."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    seen = [source.epochs for source in sources if source.epochs > 0] or [1.0]
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, min(seen) / 2), max(5.0, max(seen) * 3))
    axes.xaxis.set_major_formatter(FuncFormatter(_plainly))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color=INK, lw=0.8, ls=(0, (4, 3)))
    for at, source in enumerate(sources):
        cap = source.max_epochs or MAX_EPOCHS
        late = source.epochs >= cap
        color, alpha = (LATE, 1.0) if source.max_epochs else (INK, 0.3)
        axes.vlines(cap, at - 0.3, at + 0.3, color=color, alpha=alpha, lw=1.2)
        if source.epochs > 0:
            axes.hlines(at, axes.get_xlim()[0], source.epochs, color=FAINT, lw=2)
            axes.plot(source.epochs, at, "o", ms=5, color=LATE if late else "#23395b")
        axes.annotate(
            _told(source),
            (max(source.epochs, axes.get_xlim()[0]), at),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=INK,
        )
    axes.set_xlabel("epochs (marked: the cap, or 4)", color=INK, fontsize=9)


def _told(source: RealizedSource) -> str:
    text = f"{source.epochs:.2f}"
    return (
        f"{text}, {'cap' if source.max_epochs else '4'} at step {source.reaches:,}"
        if source.reaches
        else text
    )


def _name(source: RealizedSource) -> str:
    return f"{source.counts.source}\n{ROLES.get(source.role, source.role)}"


def _title(mix: RealizedMix) -> str:
    waste = (mix.ending + mix.aligning) / mix.slots if mix.slots else 0.0
    first = f"steps {mix.since + 1:,} to {mix.step:,} of {mix.of:,}"
    return (
        f"{mix.mix}: {first}, {mix.slots - mix.ending - mix.aligning:,} tokens, {waste:.2%} padding"
    )


def _plain(axes: "Axes") -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=7.5, length=3, color=FAINT)
    axes.grid(axis="x", color=FAINT, lw=0.6)
    axes.set_axisbelow(True)


def _plainly(value: float, _position: float) -> str:
    return f"{value:g}"
