"""The page of `exactly-once report`: one HTML file from the report views.

Every number on it comes from a query that stands beside it, to copy. The page loads nothing and
draws its charts as SVG, in the colours of the reader's theme, once for a narrow screen and once for
a wide one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.report.style import SCRIPT, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATUSES = ("NEW", "NOT_CHECKED", "DUPLICATE", "IN_DOUBT")
# a chart is drawn in these and shown in the variables of report_style, which follow the theme
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
# inches of a chart at 72 units each: about the letters of the text around it
WIDE, HALF, NARROW = 16.0, 8.5, 5.0
MOST_TRIGGERS = 25
MOST_RUNS = 12

Ask = Callable[[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Answer:
    """A query and its rows."""

    name: str
    sql: str
    rows: list[dict[str, Any]]


@dataclass
class Page:
    """Asks the queries of the page."""

    ask: Ask
    schema: str

    def query(self, name: str, sql: str, **values: str) -> Answer:
        """Ask a query in which {schema} stands for the schema."""
        text = "\n".join(line[8:] for line in sql.strip("\n").rstrip().split("\n"))
        text = text.format(schema=self.schema, **values)
        return Answer(name, text, self.ask(text))


def make_page(ask: Ask, schema: str, made_at: datetime | None = None) -> str:
    """The whole page as HTML.

    ask: runs a query and gives its rows as mappings; schema: where the report views are.
    """
    page = Page(ask, schema)
    runs = _runs(page)
    sections = [
        _things_to_do(page),
        _totals(page),
        _over_time(page),
        _by_trigger(page),
        _doubts(page),
        _waiting(page),
        _windows(page),
        _late(page),
        _ids(page),
        _run_table(runs),
    ]
    now = made_at or datetime.now(timezone.utc)
    return PAGE.substitute(
        style=STYLE,
        script=SCRIPT,
        schema=escape(schema),
        made_at=f"{now:%Y-%m-%d %H:%M} UTC",
        last_run=_last_run(runs),
        sections="\n".join(sections),
    )


# -------------------------------------------------------------------- the sections


def _things_to_do(page: Page) -> str:
    found = page.query(
        "things-to-do",
        """
        select kind, trigger_name, documents, what, what_to_do, rows_behind
        from {schema}.things_to_do
        order by documents desc, kind, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    if not found.rows:
        body = '<p class="good">Nothing to do.</p>'
    else:
        items = [
            f"<li><strong>{escape(row['trigger_name'])}</strong>: "
            f"{_number(found, place, 'documents')} {escape(row['what'])}. "
            f'<span class="advice">{escape(row["what_to_do"])}</span>'
            f"{_rows(found, place)}</li>"
            for place, row in enumerate(found.rows)
        ]
        body = f"<ul class='todo'>{''.join(items)}</ul>"
    return _section("What to do", body, found, wide=True)


def _totals(page: Page) -> str:
    found = page.query(
        "totals",
        """
        select
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'NEW') as new,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'NOT_CHECKED') as not_checked,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'DUPLICATE') as duplicate,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'IN_DOUBT') as in_doubt,
            (select count(*) from {schema}.in_doubt_documents
                where looked_at is null) as not_looked_at,
            (select count(*) from {schema}.waiting_documents) as waiting
        """,
    )
    tiles = [
        ("new", "new", "NEW: to be processed"),
        ("not_checked", "not_checked", "NOT_CHECKED: to be processed, copies not looked for"),
        ("duplicate", "duplicate", "DUPLICATE: discarded"),
        ("in_doubt", "in_doubt", "IN_DOUBT: nobody can tell"),
        ("not_looked_at", "in_doubt", "of these, nobody has looked at"),
        ("waiting", "quiet", "not decided yet"),
    ]
    body = "".join(
        f'<div class="tile {colour}">{_number(found, 0, column)}<span>{text}</span></div>'
        for column, colour, text in tiles
    )
    return _section(
        "Deliveries, once per trigger", f'<div class="tiles">{body}</div>', found, wide=True
    )


def _over_time(page: Page) -> str:
    span = page.query(
        "span",
        """
        select
            cast(timestampdiff(hour, min(received_hour), max(received_hour)) as bigint) as hours
        from {schema}.decisions_over_time
        """,
    ).rows[0]["hours"]
    unit = "hour" if (span or 0) <= 96 else "day" if span <= 24 * 120 else "month"
    found = page.query(
        "over-time",
        """
        select
            date_trunc('{unit}', received_hour) as received,
            sum(if(status = 'NEW', deliveries, 0)) as new,
            sum(if(status = 'NOT_CHECKED', deliveries, 0)) as not_checked,
            sum(if(status = 'DUPLICATE', deliveries, 0)) as duplicate,
            sum(if(status = 'IN_DOUBT', deliveries, 0)) as in_doubt
        from {schema}.decisions_over_time
        group by date_trunc('{unit}', received_hour)
        order by received
        """,
        unit=unit,
    )
    if not found.rows:
        return _section("Over time", _nothing("Nothing has been decided yet."), found, wide=True)
    width = {"hour": 1 / 24, "day": 1.0, "month": 28.0}[unit]

    def draw(axes: Axes) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

        at = [float(date2num(row["received"])) for row in found.rows]
        floor = [0] * len(at)
        for status in STATUSES:
            counts = [int(row[status.lower()]) for row in found.rows]
            axes.bar(
                at, counts, width * 0.9, floor, align="edge", color=COLOURS[status], label=status
            )
            floor = [below + count for below, count in zip(floor, counts, strict=True)]
        # one bar alone would be a wall
        missing = max(0.0, 6 * width - (at[-1] + width - at[0])) / 2
        axes.set_xlim(at[0] - missing - width * 0.2, at[-1] + width * 1.2 + missing)
        locator = AutoDateLocator(maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        _count_axis(axes.yaxis)
        axes.grid(axis="y", color=COLOURS["line"], linewidth=0.6)

    body = _chart("over-time", f"Deliveries by {unit} of receipt and status", 2.9, draw)
    body += _details(
        "numbers",
        _table(
            found,
            [
                ("received", f"{unit} of receipt (UTC)"),
                *[(status.lower(), status) for status in STATUSES],
            ],
        ),
    )
    return _section(f"Decided over time, by {unit} of receipt", body, found, wide=True)


def _by_trigger(page: Page) -> str:
    found = page.query(
        "by-trigger",
        """
        select
            trigger_name,
            sum(deliveries) as deliveries,
            sum(if(status = 'NEW', deliveries, 0)) as new,
            sum(if(status = 'NOT_CHECKED', deliveries, 0)) as not_checked,
            sum(if(status = 'DUPLICATE', deliveries, 0)) as duplicate,
            sum(if(status = 'IN_DOUBT', deliveries, 0)) as in_doubt
        from {schema}.exactly_once_statistics
        group by trigger_name
        order by in_doubt desc, deliveries desc, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    if not found.rows:
        return _section("By trigger", _nothing("Nothing has been decided yet."), found)

    def draw(axes: Axes) -> None:
        names = [_short(row["trigger_name"]) for row in found.rows]
        left = [0.0] * len(names)
        for status in STATUSES:
            shares = [100 * int(row[status.lower()]) / int(row["deliveries"]) for row in found.rows]
            axes.barh(range(len(names)), shares, 0.7, left, color=COLOURS[status], label=status)
            left = [before + share for before, share in zip(left, shares, strict=True)]
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")

    body = _chart(
        "by-trigger",
        "Share of each status by trigger",
        1.0 + 0.42 * len(found.rows),
        draw,
        widths=(HALF, NARROW),
    )
    body += _table(
        found,
        [
            ("trigger_name", "trigger"),
            ("deliveries", "deliveries"),
            *[(s.lower(), s) for s in STATUSES],
        ],
    )
    return _section("By trigger", body, found)


def _doubts(page: Page) -> str:
    found = page.query(
        "doubts",
        """
        select trigger_name, rule_id, cause, age, documents, not_looked_at, rows_behind
        from {schema}.doubts_by_cause
        order by not_looked_at desc, trigger_name, rule_id, age_rank desc
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    if not found.rows:
        return _section("In doubt", _nothing("No document is in doubt."), found)
    body = _table(
        found,
        [
            ("trigger_name", "trigger"),
            ("cause", "cause"),
            ("rule_id", "rule"),
            ("age", "decided"),
            ("documents", "documents"),
            ("not_looked_at", "not looked at"),
            ("rows_behind", "rows"),
        ],
        texts={"age": lambda text: f"{text} ago"},
    )
    return _section("In doubt, by cause and age", body, found)


def _waiting(page: Page) -> str:
    stopped = page.query(
        "stopped",
        """
        select trigger_name, cause, suspended_since, suspended_by, waiting, what_to_do
        from {schema}.stopped_triggers
        order by waiting desc, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    found = page.query(
        "waiting",
        """
        select
            trigger_name,
            reason,
            count(*) as deliveries,
            min(received_at) as oldest_received_at
        from {schema}.waiting_documents
        group by trigger_name, reason
        order by deliveries desc, trigger_name, reason
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    body = "<h3>Triggers that take nothing</h3>"
    body += (
        _table(
            stopped,
            [
                ("trigger_name", "trigger"),
                ("cause", "cause"),
                ("suspended_since", "since (UTC)"),
                ("suspended_by", "by"),
                ("waiting", "waiting"),
                ("what_to_do", "to do"),
            ],
        )
        if stopped.rows
        else _nothing("All triggers take deliveries.")
    )
    body += f"{_query(stopped)}<h3>Deliveries that wait</h3>"
    body += (
        _table(
            found,
            [
                ("trigger_name", "trigger"),
                ("reason", "reason"),
                ("deliveries", "deliveries"),
                ("oldest_received_at", "oldest received (UTC)"),
            ],
        )
        if found.rows
        else _nothing("Nothing waits.")
    )
    return _section("What waits", body, found)


def _windows(page: Page) -> str:
    found = page.query(
        "windows",
        """
        select
            trigger_name,
            uses_history,
            history_time_to_live_ms,
            copies,
            copies_in_time,
            window_99_ms,
            window_99_9_ms,
            window_100_ms,
            history_time_to_live_advice
        from {schema}.redelivery_lags
        order by copies - copies_in_time desc, copies desc, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    title = "How late copies come, against the time to live"
    if not found.rows:
        return _section(title, _nothing("There is no trigger."), found)
    drawn = [row for row in found.rows if row["copies"]]

    def draw(axes: Axes) -> None:
        for place, row in enumerate(drawn):
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
        for name, marker in (("99 %", "o"), ("99.9 %", "s"), ("all copies", "D")):
            axes.plot([], [], marker, color=COLOURS["NEW"], label=name)
        axes.plot([], [], color=COLOURS["IN_DOUBT"], linewidth=3, label="time to live")
        axes.set_yticks(range(len(drawn)), [_short(row["trigger_name"]) for row in drawn])
        axes.set_ylim(len(drawn) - 0.4, -0.6)
        axes.set_xscale("log")
        ticks = [(1, "1 ms"), (1e3, "1 s"), (6e4, "1 min"), (3.6e6, "1 h"), (8.64e7, "1 day")]
        ticks += [(6.048e8, "1 week"), (2.592e9, "30 days")]
        low, high = axes.get_xlim()
        shown = [(at, text) for at, text in ticks if low <= at <= high] or ticks[1:5]
        axes.set_xticks([at for at, _ in shown], [text for _, text in shown])
        axes.minorticks_off()
        axes.grid(axis="x", color=COLOURS["line"], linewidth=0.6)

    body = ""
    if drawn:
        body += _chart(
            "windows",
            "The windows that would have caught 99, 99.9 and 100 per cent of the copies, and the "
            "time to live, by trigger",
            1.1 + 0.5 * len(drawn),
            draw,
            widths=(HALF, NARROW),
        )
    milliseconds = dict.fromkeys(
        ("history_time_to_live_ms", "window_99_ms", "window_99_9_ms", "window_100_ms"), duration
    )
    body += _table(
        found,
        [
            ("trigger_name", "trigger"),
            ("history_time_to_live_ms", "time to live"),
            ("copies", "copies"),
            ("copies_in_time", "in time"),
            ("window_99_ms", "99 %"),
            ("window_99_9_ms", "99.9 %"),
            ("window_100_ms", "all"),
            ("history_time_to_live_advice", "history time to live advice"),
        ],
        numbers=milliseconds,
    )
    return _section(title, body, found)


def _late(page: Page) -> str:
    found = page.query(
        "late",
        """
        select
            trigger_name,
            count_if(kind = 'BEFORE_EXPIRY') as before_expiry,
            count_if(kind = 'AFTER_EXPIRY') as after_expiry
        from {schema}.late_duplicates
        group by trigger_name
        order by after_expiry desc, before_expiry desc, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    body = (
        _table(
            found,
            [
                ("trigger_name", "trigger"),
                ("before_expiry", "discarded shortly before expiry"),
                ("after_expiry", "processed again after expiry"),
            ],
        )
        if found.rows
        else _nothing("No copy came near the end of its entry or after it.")
    )
    return _section("Late copies", body, found)


def _ids(page: Page) -> str:
    found = page.query(
        "ids",
        """
        select
            coalesce(k.trigger_name, p.trigger_name) as trigger_name,
            coalesce(k.keys_with_several_payloads, 0) as keys_with_several_payloads,
            coalesce(k.discarded, 0) as discarded,
            coalesce(p.payloads_with_several_keys, 0) as payloads_with_several_keys,
            coalesce(p.processed, 0) as processed
        from (
            select
                trigger_name,
                count(*) as keys_with_several_payloads,
                sum(discarded) as discarded
            from {schema}.keys_with_several_payloads
            group by trigger_name
        ) as k
        full outer join (
            select
                trigger_name,
                count(*) as payloads_with_several_keys,
                sum(processed) as processed
            from {schema}.payloads_with_several_keys
            group by trigger_name
        ) as p on k.trigger_name = p.trigger_name
        order by discarded desc, trigger_name
        limit {most}
        """,
        most=str(MOST_TRIGGERS),
    )
    body = (
        _table(
            found,
            [
                ("trigger_name", "trigger"),
                ("keys_with_several_payloads", "ids with different payloads"),
                ("discarded", "duplicates under them"),
                ("payloads_with_several_keys", "payloads under different ids"),
                ("processed", "processed of them"),
            ],
        )
        if found.rows
        else _nothing("Every id came with one payload, and every payload under one id.")
    )
    return _section("Ids that are not what they should be", body, found)


def _runs(page: Page) -> Answer:
    return page.query(
        "runs",
        """
        select
            run_number,
            started_at,
            seconds_to_publication,
            taken,
            decided,
            waiting,
            unrouted,
            rejected,
            decided_in_doubt,
            entries_removed
        from {schema}.run_log
        order by run_number desc
        limit {most}
        """,
        most=str(MOST_RUNS),
    )


def _last_run(runs: Answer) -> str:
    if not runs.rows:
        return "no run is published yet"
    return (
        f"last run {_number(runs, 0, 'run_number')}, "
        f"{runs.rows[0]['started_at']:%Y-%m-%d %H:%M} UTC"
    )


def _run_table(runs: Answer) -> str:
    if not runs.rows:
        return _section("Last runs", _nothing("No run is published yet."), runs, wide=True)
    body = _table(
        runs,
        [
            ("run_number", "run"),
            ("started_at", "started (UTC)"),
            ("seconds_to_publication", "seconds"),
            ("taken", "taken"),
            ("decided", "decided"),
            ("waiting", "waiting"),
            ("unrouted", "unrouted"),
            ("rejected", "rejected"),
            ("decided_in_doubt", "in doubt"),
            ("entries_removed", "entries removed"),
        ],
    )
    return _section("Last runs", body, runs, wide=True)


# -------------------------------------------------------------------- HTML


def _section(title: str, body: str, answer: Answer, wide: bool = False) -> str:
    return (
        f'<section class="{"wide" if wide else ""}" aria-labelledby="title-{answer.name}">'
        f'<h2 id="title-{answer.name}">{escape(title)}</h2>{body}{_query(answer)}</section>'
    )


def _nothing(text: str) -> str:
    return f'<p class="nothing">{escape(text)}</p>'


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def _copied(name: str, sql: str) -> str:
    """A query with a button that copies it."""
    return (
        f'<div class="sql"><pre id="{name}">{escape(sql)}</pre>'
        f'<button type="button" data-copy="{name}">copy</button></div>'
    )


def _query(answer: Answer) -> str:
    return _details("query", _copied(f"query-{answer.name}", answer.sql))


def _rows(answer: Answer, place: int) -> str:
    """The rows behind a number, as a query to copy."""
    name = f"rows-{answer.name}-{place}"
    return _details("rows", _copied(name, answer.rows[place]["rows_behind"]))


def _number(
    answer: Answer, place: int, column: str, words: Callable[[int], str] | None = None
) -> str:
    """A number that says from which row and column of which query it comes."""
    value = answer.rows[place][column]
    if value is None:
        return "-"
    text = words(int(value)) if words else f"{value:,}"
    return (
        f'<data value="{value}" data-query="query-{answer.name}" data-row="{place}" '
        f'data-column="{column}">{escape(text)}</data>'
    )


def _table(
    answer: Answer,
    columns: Sequence[tuple[str, str]],
    numbers: Mapping[str, Callable[[int], str]] | None = None,
    texts: Mapping[str, Callable[[str], str]] | None = None,
) -> str:
    """The rows of an answer; on a narrow screen each cell says its column."""

    def is_number(column: str) -> bool:
        return any(
            isinstance(row[column], (int, Decimal)) and not isinstance(row[column], bool)
            for row in answer.rows
        )

    def cell(place: int, column: str, title: str) -> str:
        value = answer.rows[place][column]
        label = f' data-label="{escape(title)}"'
        if column == "rows_behind":
            return f"<td>{_rows(answer, place)}</td>"
        if is_number(column):
            words = (numbers or {}).get(column)
            return f'<td class="number"{label}>{_number(answer, place, column, words)}</td>'
        if isinstance(value, datetime):
            return f"<td{label}>{value:%Y-%m-%d %H:%M}</td>"
        if value is None:
            return f'<td{label} class="none">-</td>'
        text = (texts or {}).get(column, str)(str(value))
        return f"<td{label}>{escape(text)}</td>"

    head = "".join(
        f'<th scope="col"{" class=number" if is_number(column) else ""}>{escape(title)}</th>'
        for column, title in columns
    )
    body = "".join(
        "<tr>" + "".join(cell(place, column, title) for column, title in columns) + "</tr>"
        for place in range(len(answer.rows))
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def duration(milliseconds: int) -> str:
    """A span of time as a person says it."""
    spans = (
        (1000, 1, "ms"),
        (120_000, 1000, "s"),
        (7_200_000, 60_000, "min"),
        (172_800_000, 3_600_000, "h"),
    )
    divisor, unit = next(
        ((divisor, unit) for limit, divisor, unit in spans if milliseconds < limit),
        (86_400_000, "days"),
    )
    return f"{milliseconds / divisor:.1f}".removesuffix(".0") + f" {unit}"


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


# -------------------------------------------------------------------- charts


def _chart(
    name: str,
    description: str,
    height: float,
    draw: Callable[[Axes], None],
    widths: tuple[float, float] = (WIDE, NARROW),
) -> str:
    """One figure drawn twice; the style shows the one that fits the screen."""
    wide, narrow = (
        _svg(f"{name}-{kind}", description, (width, height), draw)
        for kind, width in zip(("wide", "narrow"), widths, strict=True)
    )
    return (
        f'<figure><div class="on-wide">{wide}</div><div class="on-narrow">{narrow}</div></figure>'
    )


def _svg(
    name: str, description: str, size: tuple[float, float], draw: Callable[[Axes], None]
) -> str:
    import matplotlib
    from matplotlib.figure import Figure

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
    with matplotlib.rc_context(style):
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
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # ids that two charts would share, and nothing refers to
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"|height="[^"]*pt"', r"\1", text)
    text = re.sub(r"font: ([^;\"]*px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)


def _count_axis(axis: Any) -> None:
    """Whole numbers, with thousands."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


PAGE = Template(
    """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Exactly once: $schema</title>
<style>$style</style>
</head>
<body>
<header><h1>Exactly once</h1><p>$schema, $last_run; page made $made_at</p></header>
<main>
$sections
</main>
<script>$script</script>
</body>
</html>
"""
)


# -------------------------------------------------------------------- the command

VIEWS = (
    "decisions_over_time",
    "doubts_by_cause",
    "exactly_once_statistics",
    "in_doubt_documents",
    "keys_with_several_payloads",
    "late_duplicates",
    "payloads_with_several_keys",
    "redelivery_lags",
    "run_log",
    "stopped_triggers",
    "things_to_do",
    "waiting_documents",
)


def ask_spark(spark: Any, schema: str) -> Ask:
    """Ask a Spark session, after a look whether the report views are there."""
    try:
        there = {row[1] for row in spark.sql(f"show views in {schema}").collect()}
    except Exception:
        there = set()
    missing = [view for view in VIEWS if view not in there]
    if missing:
        raise ExactlyOnceError(
            f"{missing[0]} is not in schema {schema}: make the views with `dbt build`, or with "
            "`dbt run --select path:models/report` after a run"
        )

    def in_utc(value: Any) -> Any:
        # PySpark gives times in the zone of this machine
        if isinstance(value, datetime):
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        return value

    return lambda sql: [
        {name: in_utc(value) for name, value in row.asDict().items()}
        for row in spark.sql(sql).collect()
    ]
