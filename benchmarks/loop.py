"""From delivery to status: a loop in its own process, fed with files, round by round."""

from __future__ import annotations

import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from lake import write_project

# deliveries in a round; of a hundred, ten are copies of documents of the round before
SIZES = (1, 100)
# seconds between two looks for files; a delivery waits half as long on average
EVERY = 0.2
# warm-up rounds of each size, which do not count: Java compiles what runs often
WARMING = 3


def delivery_to_status(folder: Path, rounds: int) -> dict[int, list[float]]:
    """Seconds from the moment when a file is there to the line of the loop that it is decided."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = folder / "in"
    sources.mkdir(parents=True)
    # the loop sets Java's thresholds itself
    write_project(folder, "loop", {}, many_runs=False)
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    with _loop(folder) as lines:
        _line(lines)
        for turn in range(rounds + WARMING):
            for size in SIZES:
                _put(sources, turn, size)
                begin = time.perf_counter()
                said = _line(lines)
                seconds = time.perf_counter() - begin
                if f": {size} taken, {size} decided" not in said:
                    raise RuntimeError(f"{size} should have been decided: {said}")
                if turn >= WARMING:
                    found[size].append(seconds)
                    print(f"-- loop, round {turn + 1 - WARMING}, {size}: {seconds:.2f} s")
    return found


def summary(found: dict[int, list[float]]) -> dict[str, dict[str, float]]:
    """Rounds, median, 99th percentile and the slowest, by deliveries in a round."""
    return {
        str(size): {
            "rounds": len(times),
            "median": statistics.median(times),
            "p99": statistics.quantiles(times, n=100, method="inclusive")[98],
            "slowest": max(times),
        }
        for size, times in found.items()
    }


@contextmanager
def _loop(folder: Path) -> Iterator[IO[str]]:
    """A running loop, and its output."""
    command = [sys.executable, "-m", "dbt_exactly_once.cli", "run", "--land", "in"]
    with subprocess.Popen(
        [*command, "--every", f"{EVERY}s"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _line(lines: IO[str]) -> str:
    said = lines.readline()
    if not said or "failed: " in said:
        raise RuntimeError(f"the loop has failed: {said}")
    # for a person who watches
    print(re.sub(r"; warning.*?(?=; took)", "", said), end="")
    return said


def _put(sources: Path, turn: int, size: int) -> None:
    """Write a file of deliveries; the rename makes it appear as a whole."""
    written = sources / f".{size}"
    with written.open("w", encoding="utf-8") as file:
        for number in range(size):
            is_copy = turn and number % 10 == 9
            document = f"{size}-{turn - 1}-{number - 1}" if is_copy else f"{size}-{turn}-{number}"
            row = {
                "delivery_id": f"d{size}-{turn}-{number}",
                "received_at": datetime.now(timezone.utc).isoformat(),
                "transport": "RABBITMQ",
                "document_type": "order",
                "guaranteed": True,
                "uuid": document,
                "document": '{"text": "' + "x" * 300 + '"}',
            }
            file.write(json.dumps(row) + "\n")
    written.replace(sources / f"{size}-{turn}.jsonl")
