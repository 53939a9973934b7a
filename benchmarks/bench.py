"""The product and what people write instead, measured on the same data in one session.

    make bench
    python benchmarks/bench.py [--live 2e6] [--expired 2e6] [--deliveries 200000] [--rounds 3]
        [--parts rivals,expired,live,size,hot,commits,storage,start] [--place .lake/bench]

Rounds are interleaved: every contestant runs once, then all again. Prints medians and ratios,
writes them to bench.json and bench.svg in the place. The lakes are made once and kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from lake import NOW, PROJECT, Lake, write_project
from matplotlib import pyplot
from rivals import SQL_RIVALS, duckdb_anti_join, timed, watermark

mpl.use("Agg")
DETECT = ("history_matches", "resolver_answers", "decisions")
RECORD = (
    "document_history",
    "document_status",
    "opened_documents",
    "open_documents",
    "waiting_deliveries",
    "trigger_states",
    "journal_entries",
    "published_runs",
)
HISTORY = "exactly_once.document_history"
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
        "detect + record": span(nodes, DETECT + RECORD),
        "transaction": span(nodes, tuple(nodes)),
    }


def check(lake: Lake, number: int, copies: int) -> None:
    """Refuse a figure of a run that has decided anything else than it should have."""
    decided, duplicates = lake.sql(
        "select decided, aggregate(filter(decided_by_trigger, d -> d.status = 'DUPLICATE'), 0L, "
        "(sum, d) -> sum + d.documents) from exactly_once.published_runs "
        "where run_number = (select max(run_number) from exactly_once.published_runs)"
    )[0]
    if (decided, duplicates) != (number, copies):
        raise RuntimeError(
            f"{decided} deliveries were decided, {duplicates} as duplicates: {number} and {copies} "
            "it should have been"
        )


def span(nodes: dict[str, tuple[float, float]], names: tuple[str, ...]) -> float:
    """Seconds from the begin of the first of some nodes to the end of the last; two run at once."""
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
    detect_and_record(lake, 1000)
    rounds: Rounds = {}
    slow: set[str] = set()
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
        for name, rival in SQL_RIVALS.items():
            if name not in slow:
                add(rounds, name, timed(lake, rival))
                # once is enough to know of one that is ten times slower than the others
                if rounds[name][0] > options.patience:
                    slow.add(name)
        if options.watermark:
            add(rounds, "dropDuplicatesWithinWatermark", watermark(lake, "batch"))
        add(rounds, "DuckDB, anti join on Parquet", duckdb_anti_join(lake, "batch"))
    found = medians(rounds)
    title = (
        f"{options.deliveries:,} deliveries, {options.live:,} live entries, "
        f"{options.expired:,} expired"
    )
    table(title, found, "exactly once: detect + record")
    return {"rounds": rounds, "medians": found}


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
    curve = {step: medians(found) for step, found in rounds.items()}
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
    """The same live entries beside ten times as many expired ones: a tenth of the live option."""
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
    """How many files of history, and bytes, a lookup cannot leave out."""
    return lake.sql(
        f"select count(*), sum(file_size_in_bytes) from {HISTORY}.files "
        f"where readable_metrics.expires_at.upper_bound > timestamp '{NOW}'"
    )[0]


def commits(options: argparse.Namespace) -> dict[str, Any]:
    """A run of a hundred deliveries before and after a thousand commits to every ledger."""
    # a lake of its own, since it is not what its name says afterwards
    lake = open_lake(options, options.live // 100, options.live // 50)
    (lake.folder / "made").unlink()
    rounds: Rounds = {}
    detect_and_record(lake, 100)
    for _ in range(max(options.rounds, 3)):
        add(rounds, "before", detect_and_record(lake, 100)["transaction"])
    ledgers = [name for name in RECORD if name != "opened_documents"]
    lake.add_commits(options.commits, ["rejected_deliveries", *ledgers])
    detect_and_record(lake, 100)
    for _ in range(max(options.rounds, 3)):
        add(
            rounds,
            f"after {options.commits:,} commits",
            detect_and_record(lake, 100)["transaction"],
        )
    found = medians(rounds)
    table("100 deliveries, the whole transaction", found, "before")
    return {"rounds": rounds, "medians": found}


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
    """As many deliveries of one key as of distinct ones."""
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
        for name in ("document_history", "document_status", "journal_entries", "open_documents")
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


PARTS = {
    part.__name__: part for part in (rivals, expired, live, size, hot, commits, storage, start)
}


# ---------------------------------------------------------------- the whole


def open_lake(options: argparse.Namespace, live_entries: int, expired: int) -> Lake:
    return Lake.open(
        options.place,
        live_entries,
        expired,
        {"spark.driver.memory": options.memory, "spark.sql.shuffle.partitions": "8"},
    )


def picture(results: dict[str, Any], path: Path) -> None:
    """Bars of the rivals and the curves, in one picture."""
    curves = [found for found in results.values() if "curve" in found]
    bars = results.get("rivals", {}).get("medians", {})
    figure, axes = pyplot.subplots(1, 1 + len(curves), figsize=(6 + 4 * len(curves), 4))
    first, *others = axes if curves else [axes]
    names = sorted(bars, key=lambda name: -bars[name])
    colours = ["#1f6f8b" if name.startswith("exactly") else "#b0b0b0" for name in names]
    first.barh(names, [bars[name] for name in names], color=colours)
    first.set_xlabel("seconds")
    for place, found in zip(others, curves, strict=True):
        for name in ("history_matches", "detect + record", "sum(key_hash)"):
            points = [
                (int(step), values[name])
                for step, values in found["curve"].items()
                if name in values
            ]
            if points:
                place.plot(*zip(*points, strict=True), marker="o", label=name)
        place.set(title=found["title"], xscale="log", ylim=(0, None), ylabel="seconds")
        place.legend()
    figure.tight_layout()
    figure.savefig(path)


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
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--watermark", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    options.place = options.place.absolute()
    results = {name: PARTS[name](options) for name in options.parts.split(",")}
    options.place.mkdir(parents=True, exist_ok=True)
    (options.place / "bench.json").write_text(json.dumps(results, indent=2))
    picture(results, options.place / "bench.svg")
    print(f"\n{options.place / 'bench.json'} is written, {options.place / 'bench.svg'} as well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
