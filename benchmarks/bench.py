"""The product and what people write instead, measured on the same data in one session.

    make bench
    python benchmarks/bench.py [--live 2e6] [--expired 2e6] [--deliveries 200000] [--rounds 3]
        [--parts rivals,writes,imports,expired,live,size,hot,commits,triggers,unfinished,services,
        storage,start,floor,loop,sizing]
        [--rivals 'insert only'] [--place .lake/bench] [--master 'local[1]']

Rounds are interleaved: every contestant runs once, then all again. Prints medians and ratios,
writes them to bench.json, and draws them, in the place: the rivals in rivals.svg, what grows in
growth.svg. The lakes are made once and kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import psutil
import yaml
from floor import small_runs
from lake import NOW, PROJECT, TRIGGER, Lake, write_project
from loop import delivery_to_status, summary
from matplotlib import pyplot
from matplotlib.figure import Figure
from rivals import SQL_RIVALS, duckdb_anti_join, timed, watermark

mpl.use("Agg")
# the same figures give the same picture, byte by byte
mpl.rcParams["svg.hashsalt"] = "exactly once"
OWN, OTHERS = "#1f6f8b", "#b0b0b0"
DETECT = ("history_matches", "resolver_answers", "decisions")
RECORD = (
    "history_ledger",
    "document_status",
    "opened_this_run",
    "open_documents",
    "waiting_deliveries",
    "trigger_states",
    "journal_entries",
    "published_runs",
)
HISTORY = "exactly_once.history_ledger"
# the ledgers to which a run adds a row for each document
WRITTEN = ("document_status", "history_ledger")
Rounds = dict[str, list[float]]


def detect_and_record(lake: Lake, number: int, known: float = 0.1, **more: Any) -> dict[str, float]:
    """Land deliveries and run; returns the seconds of the stages and of the lookup."""
    lake.land(number, known, **more)
    nodes = lake.run("run", "--select", "tag:transaction")
    copies = number // 1000 * int(known * 1000) + min(number % 1000, int(known * 1000))
    check(lake, number, copies if more.get("keys") is None else number - more["keys"])
    return {
        "history_matches": span(nodes, ("history_matches",)),
        "decisions": span(nodes, ("decisions",)),
        "detect": span(nodes, DETECT),
        "record": span(nodes, RECORD),
        **{name: span(nodes, (name,)) for name in WRITTEN},
        "detect + record": span(nodes, DETECT + RECORD),
        "transaction": span(nodes, tuple(nodes)),
    }


def check(lake: Lake, number: int, copies: int) -> None:
    """Refuse the figures of a run that has not decided what it should have."""
    decided, duplicates = lake.sql(
        "select decided, aggregate(filter(decided_by_trigger, d -> d.status = 'DUPLICATE'), 0L, "
        "(sum, d) -> sum + d.documents) from exactly_once.published_runs "
        "where kind = 'run' and run_number = (select max(run_number) from "
        "exactly_once.published_runs)"
    )[0]
    if (decided, duplicates) != (number, copies):
        raise RuntimeError(
            f"{decided} deliveries were decided, {duplicates} as duplicates: {number} and {copies} "
            "it should have been"
        )


def span(nodes: dict[str, tuple[float, float]], names: tuple[str, ...]) -> float:
    """Seconds from the start of the first of some nodes to the end of the last; two run at once."""
    chosen = [nodes[name] for name in names if name in nodes]
    return max(end for _, end in chosen) - min(begin for begin, _ in chosen)


def scan(lake: Lake) -> float:
    """Seconds of a sum over one column of the live entries."""
    start = time.perf_counter()
    lake.sql(f"select sum(key_hash) from {HISTORY} where expires_at > timestamp '{NOW}'")
    return time.perf_counter() - start


def add(rounds: Rounds, name: str, seconds: float) -> None:
    rounds.setdefault(name, []).append(seconds)
    print(f"   {name}: {seconds:.2f} s", flush=True)


def medians(rounds: Rounds) -> dict[str, float]:
    return {name: statistics.median(seconds) for name, seconds in rounds.items()}


def table(title: str, found: dict[str, float], base: str) -> None:
    print(f"\n{title}\n{'':44}{'median s':>10}{'ratio':>8}")
    for name, seconds in sorted(found.items(), key=lambda item: item[1]):
        print(f"{name:44}{seconds:10.2f}{seconds / found[base]:8.2f}")


# ---------------------------------------------------------------- parts


def rivals(options: argparse.Namespace) -> dict[str, Any]:
    """Detect and record of a batch against what people write instead."""
    lake = open_lake(options, options.live, options.expired)
    contestants: dict[str, Callable[[], float]] = {
        **{name: partial(timed, lake, rival) for name, rival in SQL_RIVALS.items()},
        "dropDuplicatesWithinWatermark": partial(watermark, lake, "batch"),
        "DuckDB, anti join on Parquet": partial(duckdb_anti_join, lake, "batch"),
    }
    detect_and_record(lake, 1000)
    rounds: Rounds = {}
    for turn in range(options.rounds):
        print(f"-- rivals, round {turn + 1}")
        stages = detect_and_record(lake, options.deliveries, second=turn)
        for name in ("history_matches", "decisions", "record", "detect + record"):
            add(rounds, f"exactly once: {name}", stages[name])
        add(rounds, "sum(key_hash) over live entries", scan(lake))
        lake.sql(
            "create or replace temporary view batch as select uuid, received_at, delivery_id "
            f"from landing.deliveries where delivery_id like 'b{lake.batch}-%'"
        )
        for name, rival in contestants.items():
            # one that took longer than --patience is measured once
            if options.rivals in name and rounds.get(name, [0.0])[0] <= options.patience:
                add(rounds, name, rival())
    found = medians(rounds)
    title = (
        f"{options.deliveries:,} deliveries, {options.live:,} live entries, "
        f"{options.expired:,} expired"
    )
    table(title, found, "exactly once: detect + record")
    return {"rounds": rounds, "medians": found}


def writes(options: argparse.Namespace) -> dict[str, Any]:
    """The ledgers of a batch against the same rows and columns as plain Parquet."""
    lake = open_lake(options, options.live, options.expired)
    detect_and_record(lake, 1000)
    rounds: Rounds = {}
    for turn in range(options.rounds):
        print(f"-- writes, round {turn + 1}")
        stages = detect_and_record(lake, options.deliveries, second=turn)
        for name in WRITTEN:
            add(rounds, f"exactly once: {name}", stages[name])
            add(rounds, f"Parquet: {name}", as_parquet(lake, name))
    found = medians(rounds)
    table(f"{options.deliveries:,} deliveries", found, "Parquet: document_status")
    return {"rounds": rounds, "medians": found}


def as_parquet(lake: Lake, ledger: str) -> float:
    """Seconds to write the rows that the last run has added to a ledger as Parquet files."""
    relation = f"exactly_once.{ledger}"
    snapshot, parent = lake.sql(
        f"select snapshot_id, parent_id from {relation}.snapshots "
        "where operation = 'append' order by committed_at desc limit 1"
    )[0]
    reader = lake.spark.read.option("start-snapshot-id", parent)
    rows = reader.option("end-snapshot-id", snapshot).table(f"{lake.catalog}.{relation}")
    start = time.perf_counter()
    rows.write.mode("overwrite").parquet(str(lake.folder / "parquet" / ledger))
    return time.perf_counter() - start


def imports(options: argparse.Namespace) -> dict[str, Any]:
    """Import the documents of the live entries from a table, then decide a batch of copies."""
    lake = open_lake(options, 0, 0, "imports")
    (lake.folder / "made").unlink()
    documents = options.live // 2
    lake.fill_processed(documents)
    called = {
        "trigger_name": TRIGGER,
        "relation": "rivals.processed",
        "key": "uuid",
        "processed_at": "received_at",
    }
    found: dict[str, Any] = {"documents": documents}
    begin = forget_peak()
    for name in ("import", "the same again"):
        start = time.perf_counter()
        lake.run("run-operation", "import_history", "--args", json.dumps(called))
        found[name] = time.perf_counter() - start
    found["gigabytes before"], found["gigabytes at most"] = begin, peak()
    [(entries, known)] = lake.sql(
        f"select count(*), count(distinct document_key) from {HISTORY} where has_completed"
    )
    if (entries, known) != (documents, documents):
        raise RuntimeError(f"{entries} rows of {known} keys were imported: {documents} there are")
    lake.live = options.live
    found["a batch of copies"] = detect_and_record(lake, options.deliveries, known=1)["transaction"]
    print(f"\nimport of {documents:,} documents")
    for name, value in found.items():
        print(f"{name:44}{value:14,.1f}")
    return found


def java() -> psutil.Process:
    """The process of Java that Spark runs in."""
    children = psutil.Process().children(recursive=True)
    return next(child for child in children if child.name() == "java")


def forget_peak() -> float:
    """Reset the peak of Java's memory; returns its size, in gigabytes."""
    Path(f"/proc/{java().pid}/clear_refs").write_text("5")
    return java().memory_info().rss / 1e9


def peak() -> float:
    """The peak of Java's memory since it was reset, in gigabytes."""
    status = Path(f"/proc/{java().pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9


def grows(
    options: argparse.Namespace, title: str, steps: dict[int, Callable[[], dict[str, float]]]
) -> dict[str, Any]:
    """A curve: each step in turn, several rounds."""
    rounds: dict[int, Rounds] = {step: {} for step in steps}
    for turn in range(options.rounds):
        print(f"-- {title}, round {turn + 1}")
        for step, measure in steps.items():
            for name, seconds in measure().items():
                rounds[step].setdefault(name, []).append(seconds)
    return tell(title, {step: medians(found) for step, found in rounds.items()})


def tell(title: str, curve: dict[int, dict[str, float]]) -> dict[str, Any]:
    print(f"\n{title}")
    for step, found in curve.items():
        print(
            f"{step:>12,}" + "".join(f"  {name} {seconds:.2f}" for name, seconds in found.items())
        )
    return {"title": title, "curve": curve}


def live(options: argparse.Namespace) -> dict[str, Any]:
    """A hundred deliveries against more and more live entries."""
    sizes = [options.live // 100, options.live // 10, options.live]
    lakes = {
        size: open_lake(options, size, options.expired if size == options.live else size)
        for size in sizes
    }
    return grows(
        options,
        "100 deliveries, by live entries",
        {size: lambda lake=lake: with_scan(lake, 100) for size, lake in lakes.items()},
    )


def with_scan(lake: Lake, number: int) -> dict[str, float]:
    return {**detect_and_record(lake, number), "sum(key_hash)": scan(lake)}


def expired(options: argparse.Namespace) -> dict[str, Any]:
    """A tenth of --live as live entries, beside as many and ten times as many expired ones."""
    number = options.live // 10
    lakes = {times: open_lake(options, number, times * number) for times in (1, 10)}
    read = {times: live_files(lake) for times, lake in lakes.items()}
    for times, (files, in_bytes) in read.items():
        print(f"   {times * number:,} expired: {files} files of {in_bytes:,} bytes can be live")
    found = grows(
        options,
        f"{options.deliveries:,} deliveries, by expired entries",
        {
            times * number: lambda lake=lake: with_scan(lake, options.deliveries)
            for times, lake in lakes.items()
        },
    )
    return {**found, "read": read}


def live_files(lake: Lake) -> tuple[int, int]:
    """Number and bytes of the files of history that a lookup cannot skip."""
    return lake.sql(
        f"select count(*), sum(file_size_in_bytes) from {HISTORY}.files "
        f"where readable_metrics.expires_at.upper_bound > timestamp '{NOW}'"
    )[0]


def commits(options: argparse.Namespace) -> dict[str, Any]:
    """A run of a hundred deliveries after more and more commits to every ledger."""
    ledgers = [name for name in RECORD if name != "opened_this_run"]

    def more(lake: Lake, number: int) -> None:
        lake.add_commits(number, ["rejected_deliveries", *ledgers])

    steps = [1, options.commits // 10, options.commits]
    return adds_up(options, "commits", "100 deliveries, by commits to every ledger", steps, more)


def triggers(options: argparse.Namespace) -> dict[str, Any]:
    """A run of a hundred deliveries beside more and more triggers that take others."""
    others: dict[str, str] = {}

    def more(lake: Lake, number: int) -> None:
        others.update({f"other_{len(others) + place}": "" for place in range(number)})
        lake.take(others)

    return adds_up(options, "triggers", "100 deliveries, by other triggers", [1, 10, 100], more)


def unfinished(options: argparse.Namespace) -> dict[str, Any]:
    """A run of a hundred deliveries beside more and more documents whose service has not ended."""

    def more(lake: Lake, number: int) -> None:
        lake.take({"parcel": "ship"})
        lake.land(number, 0, document_type="parcel")
        lake.run("run", "--select", "tag:transaction")

    steps = [1, options.deliveries // 20, options.deliveries]
    return adds_up(options, "unfinished", "100 deliveries, by unfinished documents", steps, more)


BOOKED = """
{{ config(materialized='service', meta={'service': 'book'}) }}
select delivery_id, document from {{ work() }}
"""


def services(options: argparse.Namespace) -> dict[str, Any]:
    """More and more documents of a serial trigger whose service is a dbt model, in one run."""
    lake = open_lake(options, options.live // 100, options.live // 100, "services")
    project = yaml.safe_load((lake.folder / "dbt_project.yml").read_text())
    project["model-paths"] = ["models", "services"]
    (lake.folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (lake.folder / "services").mkdir(exist_ok=True)
    (lake.folder / "services" / "booked.sql").write_text(BOOKED)
    lake.take({"parcel": "book"})
    booked = 0

    def serve(number: int) -> dict[str, float]:
        nonlocal booked
        lake.land(number, 0, document_type="parcel")
        nodes = lake.run("build", "--selector", "hot_path")
        found = lake.sql("select count(distinct delivery_id), count(*) from exactly_once.booked")[0]
        booked += number
        if found[0] < booked or found[0] != found[1]:
            raise RuntimeError(f"{found} documents are booked and {booked} should be")
        return {"service": span(nodes, ("booked",)), "whole": span(nodes, tuple(nodes))}

    # the first runs of a session are slow, and may find what an earlier benchmark has left
    for _ in range(3):
        serve(1)
        booked = lake.sql("select count(*) from exactly_once.booked")[0][0]
    steps = {number: lambda number=number: serve(number) for number in (1, 100, 10_000)}
    return grows(options, "by documents of a serial trigger with a model as service", steps)


def adds_up(
    options: argparse.Namespace,
    part: str,
    title: str,
    steps: list[int],
    more: Callable[[Lake, int], None],
) -> dict[str, Any]:
    """A curve over what is added to a lake step by step; the part's lake is recreated each time."""
    lake = open_lake(options, options.live // 100, options.live // 100, part)
    (lake.folder / "made").unlink()
    curve: dict[int, dict[str, float]] = {}
    # the first runs of a session are slow
    for _ in range(4):
        detect_and_record(lake, 100)
    there = 0
    for step in steps:
        more(lake, step - there)
        there = step
        detect_and_record(lake, 100)
        rounds: Rounds = {}
        for _ in range(max(options.rounds, 3)):
            for name, seconds in detect_and_record(lake, 100).items():
                rounds.setdefault(name, []).append(seconds)
        curve[step] = medians(rounds)
    return tell(title, curve)


def size(options: argparse.Namespace) -> dict[str, Any]:
    """The same history, more and more deliveries."""
    lake = open_lake(options, options.live, options.expired)
    sizes = [
        number for number in (1, 100, 10_000, 100_000, 200_000) if number <= options.deliveries
    ]
    return grows(
        options,
        "by deliveries in the run",
        {number: lambda number=number: detect_and_record(lake, number) for number in sizes},
    )


def hot(options: argparse.Namespace) -> dict[str, Any]:
    """The same number of deliveries, once with one key and once with distinct keys."""
    lake = open_lake(options, options.live, options.expired)
    number = options.deliveries // 2
    return grows(
        options,
        f"{number:,} deliveries, by number of distinct keys",
        {
            1: lambda: detect_and_record(lake, number, 0, keys=1),
            number: lambda: detect_and_record(lake, number, 0),
        },
    )


def storage(options: argparse.Namespace) -> dict[str, Any]:
    """Bytes that a decided document takes in each ledger, in a run of the size of the benchmark."""
    lake = open_lake(options, options.live, options.expired)
    before = bytes_of_ledgers(lake)
    detect_and_record(lake, options.deliveries)
    after = bytes_of_ledgers(lake)
    found = {name: (after[name] - before[name]) / options.deliveries for name in after}
    print("\nbytes per decided document")
    for name, value in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{name:44}{value:10.1f}")
    return found


def bytes_of_ledgers(lake: Lake) -> dict[str, float]:
    return {
        name: float(
            lake.sql(f"select coalesce(sum(file_size_in_bytes), 0) from exactly_once.{name}.files")[
                0
            ][0]
        )
        for name in ("history_ledger", "document_status", "journal_entries", "open_documents")
    }


def start(options: argparse.Namespace) -> dict[str, Any]:
    """A whole process that decides one delivery, against plain dbt with one view."""
    lake = open_lake(options, options.live // 100, options.live // 100)
    write_project(lake.folder, lake.catalog, {}, many_runs=False)
    plain = options.place / "plain"
    (plain / "models").mkdir(parents=True, exist_ok=True)
    (plain / "models" / "one.sql").write_text("select 1 as one\n")
    (plain / "dbt_project.yml").write_text("name: plain\nprofile: plain\n")
    (plain / "profiles.yml").write_text(
        "plain: {target: local, outputs: {local: {type: spark, method: session, schema: plain, "
        "host: NA, threads: 2}}}\n"
    )
    rounds: Rounds = {}
    for turn in range(max(options.rounds, 5)):
        print(f"-- start, round {turn + 1}")
        lake.land(1)
        add(rounds, "exactly once: dbt run, one delivery", process(lake.folder))
        add(rounds, "plain dbt run, one view", process(plain))
    found = medians(rounds)
    table("whole process", found, "plain dbt run, one view")
    return {"rounds": rounds, "medians": found}


def floor(options: argparse.Namespace) -> dict[str, Any]:
    """A run of one delivery in a warm session: the transaction, and the build of a schedule."""
    lake = open_lake(
        options, 200_000, 200_000, "floor", {"spark.sql.ui.retainedExecutions": "1000"}
    )
    rounds = small_runs(lake, max(options.rounds, 5))
    found = {
        way: {name: statistics.median(one[name] for one in runs) for name in runs[0]}
        for way, runs in rounds.items()
    }
    for way, medians_of_way in found.items():
        print(f"{way:14}" + "".join(f"{n:>12} {v:.2f}" for n, v in medians_of_way.items()))
    return {"rounds": rounds, "medians": found}


def loop(options: argparse.Namespace) -> dict[str, Any]:
    """From delivery to status in a loop that stays warm; `--rounds 200` for the 99th percentile."""
    found = delivery_to_status(options.place / "loop", max(options.rounds, 20))
    told = summary(found)
    print(f"\n{'deliveries':12}" + "".join(f"{name:>10}" for name in told["1"]))
    for size, values in told.items():
        print(f"{size:12}" + "".join(f"{value:10.2f}" for value in values.values()))
    return {"rounds": found, "summary": told}


def process(project: Path) -> float:
    """Seconds of `dbt run` as a process of its own."""
    begin = time.perf_counter()
    subprocess.run(
        [Path(sys.executable).parent / "dbt", "--quiet", "run", "--profiles-dir", "."],
        cwd=project,
        check=True,
        capture_output=True,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
    )
    return time.perf_counter() - begin


def sizing(options: argparse.Namespace) -> dict[str, Any]:
    """Few and many deliveries against all the live entries, on the cores of --master."""
    lake = open_lake(options, options.live, options.expired)
    return grows(
        options,
        f"by deliveries, {options.live:,} live entries, {options.master or 'as in the profile'}",
        {
            number: lambda number=number: with_scan(lake, number)
            for number in (100, options.deliveries // 10, options.deliveries)
        },
    )


PARTS = {
    part.__name__: part
    for part in (
        rivals,
        writes,
        imports,
        expired,
        live,
        size,
        hot,
        commits,
        triggers,
        unfinished,
        services,
        storage,
        start,
        floor,
        loop,
        sizing,
    )
}


# ---------------------------------------------------------------- the whole


def open_lake(
    options: argparse.Namespace,
    live_entries: int,
    expired: int,
    part: str = "",
    more: Mapping[str, str] | None = None,
) -> Lake:
    settings = {"spark.driver.memory": options.memory, "spark.sql.shuffle.partitions": "8"}
    settings |= more or {}
    if options.master:
        settings |= {"spark.master": options.master, "spark.executor.memory": options.memory}
    return Lake.open(options.place, live_entries, expired, settings, part)


def draw_rivals(found: dict[str, float], path: Path) -> None:
    """A bar for each, the quickest at the top."""
    figure, axes = pyplot.subplots(figsize=(8, 0.5 + 0.35 * len(found)))
    names = sorted(found, key=lambda name: -found[name])
    colours = [OWN if name.startswith("exactly") else OTHERS for name in names]
    axes.barh(names, [found[name] for name in names], color=colours)
    axes.set_xlabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


# the curves that are drawn, and how
CURVES = {
    "transaction": {"color": OTHERS, "label": "the whole run"},
    "detect + record": {"color": OWN, "label": "detect and record"},
    "history_matches": {"color": "#c44700", "label": "the lookup in history"},
    "sum(key_hash)": {"color": "#333333", "label": "a bare scan", "linestyle": ":"},
}


def draw_growth(curves: list[dict[str, Any]], path: Path) -> None:
    """A small picture for each curve, three in a row, over the same seconds."""
    rows = -(-len(curves) // 3)
    figure, grid = pyplot.subplots(
        rows, 3, figsize=(11, 3.2 * rows), squeeze=False, sharey="row", layout="constrained"
    )
    for axes in grid.flat[len(curves) :]:
        axes.set_axis_off()
    for axes, found in zip(grid.flat, curves, strict=False):
        for name, look in CURVES.items():
            points = [
                (int(step), values[name])
                for step, values in found["curve"].items()
                if name in values
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", markersize=4, **look)
        axes.set_title(found["title"], fontsize=9)
        axes.set(xscale="log", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    for row in grid:
        row[0].set_ylabel("seconds")
    handles = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    print(f"{path} is written")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    number = lambda text: int(float(text))  # noqa: E731
    parser.add_argument("--live", type=number, default=2_000_000)
    parser.add_argument("--expired", type=number, default=2_000_000)
    parser.add_argument("--deliveries", type=number, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commits", type=number, default=1000)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--place", type=Path, default=PROJECT / ".lake" / "bench")
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--master", help="of Spark: local[1], spark://127.0.0.1:7077, ...")
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--rivals", default="", help="those with this text in their names")
    options = parser.parse_args()
    options.place = options.place.absolute()
    results = {name: PARTS[name](options) for name in options.parts.split(",")}
    options.place.mkdir(parents=True, exist_ok=True)
    (options.place / "bench.json").write_text(json.dumps(results, indent=2))
    print(f"\n{options.place / 'bench.json'} is written")
    if "rivals" in results:
        draw_rivals(results["rivals"]["medians"], options.place / "rivals.svg")
    curves = [found for found in results.values() if "curve" in found]
    if curves:
        draw_growth(curves, options.place / "growth.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
