"""The page of `exactly-once report`: its numbers are those of the queries beside them.

A browser shows it without complaint, on a phone and on a wall.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession
from three_day_feed import three_day_feed

from dbt_exactly_once.cli import main
from dbt_exactly_once.report.page import ask_spark, duration, make_page
from dbt_exactly_once.report.queries import QUERIES

MANY = 1_000_000
STAGES = ("nothing", "one", "three_days", "many", "demo")
CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)


@dataclass
class Shown:
    """A page, and what its queries answered when it was made."""

    html: str
    answers: dict[str, list[dict[str, Any]]]
    numbers: list[dict[str, str]]


class Reader(HTMLParser):
    """Takes the numbers and the queries out of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.numbers: list[dict[str, str]] = []
        self.queries: dict[str, str] = {}
        self.cells_without_number: list[str] = []
        self._query: str | None = None
        self._is_number_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "data":
            self.numbers.append({**given, "text": ""})
            self._is_number_cell = False
        elif tag == "pre":
            self._query = given["id"]
            self.queries[self._query] = ""
        elif tag == "td":
            self._is_number_cell = given.get("class") == "number"

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._query = None

    def handle_data(self, text: str) -> None:
        if self._query is not None:
            self.queries[self._query] += text
        elif self.numbers and not self.numbers[-1]["text"]:
            self.numbers[-1]["text"] = text
        elif self._is_number_cell and text.strip(" -"):
            self.cells_without_number.append(text)


def show(runs: DbtRuns, with_rows: bool = False) -> Shown:
    """Make the page and keep what the queries that stand on it have answered."""
    ask = ask_spark(runs.spark, runs.schema)
    asked: dict[str, list[dict[str, Any]]] = {}

    def note(sql: str) -> list[dict[str, Any]]:
        asked[sql] = ask(sql)
        return asked[sql]

    html = make_page(note, runs.schema)
    reader = Reader(html)
    assert not reader.cells_without_number
    # what stands there is what was asked, to the letter; the rows behind a number are asked here
    answers = {
        name: asked[sql] if name.startswith("query-") else ask(sql)
        for name, sql in reader.queries.items()
        if with_rows or name.startswith("query-")
    }
    return Shown(html, answers, reader.numbers)


def as_landed(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "received_at": datetime.fromisoformat(row["received_at"]),
        "landed_at": datetime.fromisoformat(row["landed_at"]),
    }


@pytest.fixture(scope="module")
def pages(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Shown]:
    """The page of nothing, of one delivery, of the three-day feed, of a million, of the demo."""
    found: dict[str, Shown] = {}
    runs = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("report"))
    runs.run("seed")
    runs.run("run")
    found["nothing"] = show(runs)

    feed = [as_landed(row) for row in three_day_feed()]
    runs.land("deliveries", [{**feed[0], "delivery_id": "first", "uuid": "first"}])
    runs.decide()
    found["one"] = show(runs)

    for piece in (feed[: len(feed) // 2], feed[len(feed) // 2 :]):
        runs.land("deliveries", piece)
        runs.decide()
    runs.run(
        "run-operation",
        operation="suspend_trigger",
        arguments_of_operation={"trigger_name": "orders_by_count", "reason": "<b>moving</b>"},
    )
    last = feed[-1]["received_at"] + timedelta(minutes=1)
    more = {**feed[-1], "received_at": last, "landed_at": last}
    runs.land("deliveries", [{**more, "delivery_id": f"late-{n}", "uuid": f"l{n}"} for n in (1, 2)])
    runs.decide()
    found["three_days"] = show(runs, with_rows=True)

    add_many(runs)
    found["many"] = show(runs)

    demo = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("demo"))
    demo.run("seed")
    with gzip.open(PROJECT_FOLDER / "demo" / "rabbitmq_orders.jsonl.gz", "rt") as file:
        demo.land("deliveries", [as_landed(json.loads(line)) for line in file])
    demo.run("run")
    found["demo"] = show(demo)
    return found


def add_many(runs: DbtRuns) -> None:
    """Decisions as many runs would have left them, received over a year."""
    columns = {
        "delivery_id": "concat('many-', id)",
        "trigger_name": "concat('trigger_', id % 40)",
        "document_type": "'order.created'",
        "document_key": "concat('key-', id div 7 * 5 + id % 5)",
        "document_hash": "concat('hash-', id div 3)",
        "key_state": "'USABLE'",
        "status": "array('NEW', 'DUPLICATE', 'IN_DOUBT', 'NEW')[id % 4]",
        "decided_by": "'HISTORY'",
        "rule_id": "array('R07', 'R08', 'R10', 'R07')[id % 4]",
        "received_at": "timestampadd(second, 31 * id, timestamp '2026-01-01 00:00:00')",
        "landed_received_at": "timestampadd(second, 31 * id, timestamp '2026-01-01 00:00:00')",
        # old enough to be of one age whatever the time is
        "decided_at": "timestamp '2026-01-01 00:00:00'",
        "recoveries": "0",
        "run_id": "'many'",
    }
    runs.spark.sql(
        f"insert into {runs.schema}.document_status ({', '.join(columns)}) "
        f"select {', '.join(columns.values())} from range({MANY})"
    )


@pytest.mark.parametrize("stage", STAGES)
def test_every_number_is_recomputed_by_the_query_beside_it(
    pages: dict[str, Shown], stage: str
) -> None:
    page = pages[stage]
    assert len(page.numbers) > (5 if stage == "nothing" else 30)
    for number in page.numbers:
        row = page.answers[number["data-query"]][int(number["data-row"])]
        value = row[number["data-column"]]
        assert Decimal(number["value"]) == value, number
        if number["data-column"].endswith("_ms"):
            assert number["text"] == duration(value)
        else:
            assert number["text"] == f"{value:,}"


def test_rows_behind_a_number_are_as_many(pages: dict[str, Shown]) -> None:
    page = pages["three_days"]
    doubts = page.answers["query-doubts"]
    assert doubts
    for place, row in enumerate(doubts):
        assert len(page.answers[f"rows-doubts-{place}"]) == row["documents"]
    to_do = page.answers["query-things-to-do"]
    assert {row["kind"] for row in to_do} >= {"DOUBTS", "TIME_TO_LIVE", "STOPPED"}
    for place, row in enumerate(to_do):
        if row["kind"] in ("DOUBTS", "STOPPED"):
            assert len(page.answers[f"rows-things-to-do-{place}"]) == row["documents"]


def test_the_pages_tell_what_they_should(pages: dict[str, Shown]) -> None:
    nothing = pages["nothing"].html
    assert "no run is published yet" in nothing
    assert "Nothing to do." in nothing
    assert "Nothing has been decided yet." in nothing

    (totals,) = pages["demo"].answers["query-totals"]
    assert {name: int(value) for name, value in totals.items()} == {
        "new": 6480,
        "not_checked": 254,
        "duplicate": 130,
        "in_doubt": 1418,
        "not_looked_at": 1418,
        "waiting": 0,
    }
    # what users write is text and nothing else
    assert "<b>moving" not in pages["three_days"].html
    assert pages["three_days"].answers["query-waiting"][0]["reason"] == "SUSPENDED"
    assert len(pages["many"].html) < 2 * len(pages["three_days"].html) + 200_000


def test_hostile_names_are_text() -> None:
    # to matplotlib a formula stands between dollars
    name = "<script>alert(1)</script>\"' $orders_^$"

    def ask(sql: str) -> list[dict[str, Any]]:
        if "timestampdiff(hour" in sql:
            return [{"hours": None}]
        if "not_looked_at,\n" in sql and "as waiting" in sql:
            return [
                dict.fromkeys(("new", "not_checked", "duplicate", "in_doubt"), 1)
                | {"not_looked_at": 1, "waiting": 0}
            ]
        if "things_to_do" in sql:
            return [
                {
                    "kind": name,
                    "trigger_name": name,
                    "documents": 1,
                    "what": name,
                    "what_to_do": name,
                    "rows_behind": name,
                }
            ]
        if "group by trigger_name\norder by in_doubt" in sql:
            return [
                {"trigger_name": name, "deliveries": 4}
                | dict.fromkeys(("new", "not_checked", "duplicate", "in_doubt"), 1)
            ]
        return []

    html = make_page(ask, "s")
    assert "<script>alert" not in html
    assert html.count("<script>") == 1


def test_a_disabled_trigger_with_unfinished_documents_is_not_the_last_of_a_list() -> None:
    database = duckdb.connect()
    database.execute("create schema s")
    database.execute(
        "create table s.stopped_triggers (trigger_name text, cause text, suspended_since timestamp,"
        " suspended_by text, waiting bigint, unfinished bigint, what_to_do text)"
    )
    for name, waiting, unfinished in (("a", 0, 0), ("b", 2, 0), ("c", 0, 3)):
        row = [name, "DISABLED", None, None, waiting, unfinished, "enable it"]
        database.execute("insert into s.stopped_triggers values (?, ?, ?, ?, ?, ?, ?)", row)
    found = database.execute(QUERIES["stopped"].format(schema="s")).fetchall()
    assert [row[0] for row in found] == ["c", "b", "a"]


def test_the_command_writes_the_page_or_one_line(
    pages: dict[str, Shown],
    spark: SparkSession,
    profiles_dir: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    place = ["--project-dir", str(PROJECT_FOLDER), "--profiles-dir", str(profiles_dir)]
    assert main(["report", "--output", str(tmp_path / "none" / "page.html"), *place]) == 1
    assert "there is no folder" in capfd.readouterr().err
    # nothing of the project was ever built in the schema of this profile
    assert main(["report", "--output", str(tmp_path / "page.html"), *place]) == 1
    told = capfd.readouterr().err
    assert "decisions_over_time is not in schema exactly_once" in told
    assert "`dbt build`" in told
    assert len(told.strip().splitlines()) == 1

    runs = DbtRuns(spark, profiles_dir, tmp_path)
    runs.run("seed")
    runs.run("run")
    place = ["--project-dir", str(runs.folder), "--profiles-dir", str(runs.folder)]
    assert main(["report", "--output", str(tmp_path / "page.html"), *place]) == 0
    assert "page.html is written" in capfd.readouterr().out
    assert runs.schema in (tmp_path / "page.html").read_text(encoding="utf-8")


# -------------------------------------------------------------------- in a browser

SCREENS = {"phone": (390, 844), "wall": (1920, 1080)}

# the least contrast of texts with what is behind them, and the least size at which they stand there
LEGIBILITY = """
() => {
    const light = (text) => {
        const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
            .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (!colour.endsWith(', 0)')) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    let contrast = 99, size = 99;
    for (const e of document.querySelectorAll('h1, h2, p, td, th, summary, data, span, svg text')) {
        const box = e.getBoundingClientRect();
        const style = getComputedStyle(e);
        if (!box.width || style.clipPath !== 'none' || !e.textContent.trim()) continue;
        const [a, b] = [light(e.closest('svg') ? style.fill : style.color), light(behind(e))];
        contrast = Math.min(contrast, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        const svg = e.closest('svg');
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
        size = Math.min(size, parseFloat(style.fontSize) * scale);
    }
    const wide = [document.documentElement, ...document.querySelectorAll('.scroll')]
        .some((e) => e.scrollWidth > e.clientWidth);
    return {contrast, size, wide};
}
"""


# a button says what it has done, for a moment only
COPY = """
(name) => new Promise((done) => {
    const button = document.querySelector(`[data-copy=${name}]`);
    new MutationObserver(() => done(button.textContent)).observe(button, {childList: true});
    button.closest('details').open = true;
    button.click();
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("stage", STAGES)
def test_a_browser_shows_the_page_without_complaint(
    browser: Any, pages: dict[str, Shown], stage: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(pages[stage].html, encoding="utf-8")
    for screen, (width, height) in SCREENS.items():
        for theme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme, offline=True
            )
            page = context.new_page()
            complaints: list[str] = []
            page.on("console", lambda message, to=complaints: to.append(message.text))
            page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
            page.on(
                "request",
                lambda request, to=complaints: (
                    request.url.startswith(("file:", "data:")) or to.append(request.url)
                ),
            )
            page.goto(file.as_uri())
            found = page.evaluate(LEGIBILITY)
            assert found["contrast"] >= 4.5, (screen, theme, found)
            assert found["size"] >= (11 if screen == "phone" else 14), (screen, theme, found)
            assert not found["wide"], (screen, theme)

            assert page.evaluate(COPY, "query-totals") in ("copied", "selected")
            assert page.locator("svg[role=img][aria-label]").count() == page.locator("svg").count()
            assert complaints == [], (screen, theme)
            context.close()
