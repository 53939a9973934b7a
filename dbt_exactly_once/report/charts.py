"""The charts of the page, as SVG: in the colours of the reader's theme, once for a narrow screen
and once for a wide one."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

Rows = Sequence[Mapping[str, Any]]

STATUSES = ("NEW", "NOT_CHECKED", "DUPLICATE", "IN_DOUBT")
# a chart is drawn in these and shown in the variables of style.css, which follow the theme
COLOURS = {
    "NEW": "#a10001",
    "NOT_CHECKED": "#a10002",
    "DUPLICATE": "#a10003",
    "IN_DOUBT": "#a10004",
    "ink": "#a10005",
    "quiet": "#a10006",
    "line": "#a10007",
}
VARIABLES = {colour: f"var(--{name.lower()})" for name, colour in COLOURS.items()}
# widths in inches of 72 units: letters come out about as large as the text around the chart
WIDE, HALF, NARROW = 16.0, 8.5, 5.0


def over_time(rows: Rows, unit: str) -> str:
    """Deliveries by time of receipt and status."""
    width = {"hour": 1 / 24, "day": 1.0, "month": 28.0}[unit]

    def draw(axes: Axes) -> None:
        at = [float(date2num(row["received"])) for row in rows]
        floor = [0] * len(at)
        for status in STATUSES:
            counts = [int(row[status.lower()]) for row in rows]
            axes.bar(
                at, counts, width * 0.9, floor, align="edge", color=COLOURS[status], label=status
            )
            floor = [below + count for below, count in zip(floor, counts, strict=True)]
        # a single bar would fill the chart
        missing = max(0.0, 6 * width - (at[-1] + width - at[0])) / 2
        axes.set_xlim(at[0] - missing - width * 0.2, at[-1] + width * 1.2 + missing)
        locator = AutoDateLocator(maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="y", color=COLOURS["line"], linewidth=0.6)

    return _chart("over-time", f"Deliveries by {unit} of receipt and status", 2.9, draw, WIDE)


def by_trigger(rows: Rows) -> str:
    """The share of each status."""

    def draw(axes: Axes) -> None:
        names = [_short(row["trigger_name"]) for row in rows]
        left = [0.0] * len(names)
        for status in STATUSES:
            shares = [100 * int(row[status.lower()]) / int(row["deliveries"]) for row in rows]
            axes.barh(range(len(names)), shares, 0.7, left, color=COLOURS[status], label=status)
            left = [before + share for before, share in zip(left, shares, strict=True)]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")

    height = 1.0 + 0.42 * len(rows)
    return _chart("by-trigger", "Share of each status by trigger", height, draw, HALF)


def windows(rows: Rows) -> str:
    """How late copies come, against the time to live."""

    def draw(axes: Axes) -> None:
        _draw_windows(axes, rows)
        _legend_of_windows(axes)
        axes.set_yticks(range(len(rows)), [_short(row["trigger_name"]) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        _time_axis(axes)

    return _chart(
        "windows",
        "The windows that would have caught 99, 99.9 and 100 per cent of the copies, and the "
        "time to live, by trigger",
        1.1 + 0.5 * len(rows),
        draw,
        HALF,
    )


def _draw_windows(axes: Axes, rows: Rows) -> None:
    for place, row in enumerate(rows):
        windows = [row["window_99_ms"], row["window_99_9_ms"], row["window_100_ms"]]
        axes.plot([windows[0], windows[-1]], [place] * 2, color=COLOURS["line"], linewidth=3)
        for window, marker in zip(windows, "osD", strict=True):
            axes.plot(window, place, marker, color=COLOURS["NEW"], markersize=7)
        axes.plot(
            [row["history_time_to_live_ms"]] * 2,
            [place - 0.35, place + 0.35],
            color=COLOURS["IN_DOUBT" if row["uses_history"] else "quiet"],
            linewidth=3,
        )


def _legend_of_windows(axes: Axes) -> None:
    for name, marker in (("99 %", "o"), ("99.9 %", "s"), ("all copies", "D")):
        axes.plot([], [], marker, color=COLOURS["NEW"], label=name)
    axes.plot([], [], color=COLOURS["IN_DOUBT"], linewidth=3, label="time to live")


def _time_axis(axes: Axes) -> None:
    """Spans of time in words."""
    axes.set_xscale("log")
    ticks = [(1, "1 ms"), (1e3, "1 s"), (6e4, "1 min"), (3.6e6, "1 h"), (8.64e7, "1 day")]
    ticks += [(6.048e8, "1 week"), (2.592e9, "30 days")]
    low, high = axes.get_xlim()
    shown = [(at, text) for at, text in ticks if low <= at <= high] or ticks[1:5]
    axes.set_xticks([at for at, _ in shown], [text for _, text in shown])
    axes.minorticks_off()
    axes.grid(axis="x", color=COLOURS["line"], linewidth=0.6)


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _chart(
    name: str,
    description: str,
    height: float,
    draw: Callable[[Axes], None],
    wide: float,
) -> str:
    """One figure drawn twice; the style shows the one that fits the screen."""
    shown = (
        f'<div class="on-{kind}">{_svg(f"{name}-{kind}", description, (width, height), draw)}</div>'
        for kind, width in (("wide", wide), ("narrow", NARROW))
    )
    return f"<figure>{''.join(shown)}</figure>"


def _svg(
    name: str, description: str, size: tuple[float, float], draw: Callable[[Axes], None]
) -> str:
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        # a narrow chart is shown smaller than it is drawn
        "font.size": 13 if size[0] == NARROW else 11,
        "text.color": COLOURS["ink"],
        "axes.labelcolor": COLOURS["ink"],
        "axes.edgecolor": COLOURS["line"],
        "xtick.color": COLOURS["line"],
        "ytick.color": COLOURS["line"],
        "xtick.labelcolor": COLOURS["ink"],
        "ytick.labelcolor": COLOURS["ink"],
    }
    # names of triggers are not formulas
    with matplotlib.rc_context({**style, "text.parse_math": False}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        draw(axes)
        figure.legend(
            loc="outside upper left",
            ncols=2 if size[0] == NARROW else 4,
            frameon=False,
            handlelength=1.2,
        )
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _plain(file.getvalue(), description)


def _plain(text: str, description: str) -> str:
    """The SVG without what differs between two drawings, and in the colours of the theme."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # ids that two charts would have in common, and that nothing refers to
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"|height="[^"]*pt"', r"\1", text)
    text = re.sub(r"font: ([^;\"]*px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)
