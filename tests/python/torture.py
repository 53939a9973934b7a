"""Kills the project in every way and place, and counts what is lost, doubled or different.

    python tests/python/torture.py [--kills 60] [--pairs 15] [--takeovers 4] [--boundaries]

Real `dbt build`, `exactly-once land` and `dbt seed` processes work on a lake of their own and are
ended with SIGKILL: at random moments, and right after a change of a table that they make (the
catalog's SQLite file and the tables' metadata are watched from outside, the product has no switches
for it). What was killed is started again until the queue is empty, then every decision is compared
with that of a lake where nobody was killed. Runs are also put to sleep until another has taken
over, and woken: they must publish nothing. At last, pairs of runs start at the same moment: one
publishes, the other explains.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

PROJECT_FOLDER = Path(__file__).parents[2]
FEED = PROJECT_FOLDER / "demo" / "rabbitmq_orders.jsonl.gz"
PROGRAMS = Path(sys.executable).parent
SCHEMA = "exactly_once"
LINKED = ("models", "macros", "tests", "python_udfs", "dbt_project.yml", "selectors.yml")
STATUS = ("delivery_id", "trigger_name", "status", "rule_id", "document_key", "matched_delivery_id")
LAND, DECIDE, SEED = ("land",), ("build", "--selector", "hot_path"), ("seed",)
UPKEEP = ("run-operation", "maintain")


@dataclass(frozen=True)
class Change:
    """A table as the catalog shows it: which refs it has."""

    table: str
    refs: tuple[tuple[str, int], ...]

    @property
    def branches(self) -> set[str]:
        return {name for name, _ in self.refs if name.startswith("run_")}


class Watch:
    """Sees each change of a table in a lake, from outside."""

    def __init__(self, lake: Path) -> None:
        self._catalog = lake / "catalog.db"
        self._seen = self._locations()

    def _locations(self) -> dict[str, str]:
        if not self._catalog.exists():
            return {}
        try:
            with sqlite3.connect(f"file:{self._catalog}?mode=ro", uri=True, timeout=5) as catalog:
                return dict(
                    catalog.execute("select table_name, metadata_location from iceberg_tables")
                )
        except sqlite3.OperationalError:
            return self._seen

    def changes(self) -> list[str]:
        """What has changed since the last call, in words: of which stage it is, and what."""
        now, before = self._locations(), self._seen
        self._seen = now
        found = [f"lock: {name} gone" for name in before.keys() - now.keys() if "lock" in name]
        for name in now:
            if now[name] != before.get(name):
                found.append(self._in_words(name, before.get(name), now[name]))
        return found

    def _in_words(self, name: str, before: str | None, now: str) -> str:
        if "lock" in name:
            return f"lock: {name.removesuffix(name[len('run_lock_of') :])} made"
        old, new = _refs(before), _refs(now)
        if name in SEEDS:
            return f"seeds: {name} loaded"
        if name in LANDED:
            return f"landing: {name} changed"
        branches = new.keys() - old.keys()
        if any("upkeep" in branch for branch in branches | (old.keys() - new.keys())):
            return f"upkeep: {name}"
        if old.get("main") != new.get("main"):
            return f"publication: {name} moved"
        if old.keys() - new.keys():
            return f"publication: {name} branch dropped"
        return f"branch writes: {name}"


LEDGERS = {path.stem for path in (PROJECT_FOLDER / "models" / "record").glob("*.sql")}
SEEDS = {path.stem for path in (PROJECT_FOLDER / "seeds").glob("*.csv")}
LANDED = {"deliveries", "trigger_executions", "resubmissions", "trigger_commands"} | {
    "delivery_holds",
    "rejected_landings",
}


def _refs(location: str | None) -> dict[str, int]:
    """The refs of a table by name, from its metadata file."""
    if location is None:
        return {}
    try:
        metadata = json.loads(Path(location.removeprefix("file:")).read_text())
    except (OSError, ValueError):
        return {}
    return {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items()}


class Lake:
    """A project folder with a lake of its own, and the commands that work on it."""

    def __init__(self, folder: Path, pieces: Sequence[Path]) -> None:
        self.folder = folder
        self.pieces = list(pieces)
        self.lake = folder / "lake"
        folder.mkdir(parents=True)
        for linked in LINKED:
            if (PROJECT_FOLDER / linked).exists():
                (folder / linked).symlink_to(PROJECT_FOLDER / linked)
        shutil.copytree(PROJECT_FOLDER / "seeds", folder / "seeds")
        shutil.copy(PROJECT_FOLDER / "profiles.example.yml", folder / "profiles.yml")

    def start(self, *arguments: str, **variables: Any) -> subprocess.Popen[bytes]:
        """Start a command: `land FILE`, or one of dbt's."""
        program = "exactly-once" if arguments[0] == "land" else "dbt"
        command = [str(PROGRAMS / program), *arguments, "--project-dir", str(self.folder)]
        if variables:
            command += ["--vars", json.dumps(variables)]
        log = (self.folder / "log.txt").open("ab")
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={
                **os.environ,
                "EXACTLY_ONCE_LAKE": str(self.lake),
                "DBT_PROFILES_DIR": str(self.folder),
                "DBT_TARGET_PATH": str(self.folder / "target"),
                "DBT_LOG_PATH": str(self.folder / "logs"),
            },
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def finish(self, *arguments: str, **variables: Any) -> None:
        """Run a command that must succeed."""
        process = self.start(*arguments, **variables)
        if process.wait() != 0:
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{self.said()[-3000:]}")

    def said(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, read without Spark."""
        catalog = load_catalog(
            "lake",
            type="sql",
            uri=f"sqlite:///{self.lake / 'catalog.db'}",
            warehouse=str(self.lake / "warehouse"),
        )
        return catalog.load_table(f"{SCHEMA}.{name}").scan().to_arrow().to_pylist()

    def decisions(self) -> Counter[tuple[Any, ...]]:
        """Every row of document_status, as far as it does not depend on the run."""
        return Counter(tuple(row[name] for name in STATUS) for row in self.table("document_status"))

    def entries(self) -> Counter[tuple[Any, ...]]:
        """Every entry of document_history."""
        names = ("trigger_name", "document_key", "processing_status", "delivery_id", "started_at")
        return Counter(tuple(row[name] for name in names) for row in self.table("document_history"))


# ---- killing


@dataclass
class Score:
    """What the rig has done and found."""

    runs: int = 0
    kills: int = 0
    kills_by_stage: Counter[str] = field(default_factory=Counter)
    boundaries: Counter[str] = field(default_factory=Counter)
    deliveries: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    takeovers: int = 0
    takeovers_wrong: list[str] = field(default_factory=list)
    pairs: int = 0
    pairs_wrong: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        stages = ", ".join(f"{stage} {n}" for stage, n in sorted(self.kills_by_stage.items()))
        return [
            f"runs {self.runs}, kills {self.kills} ({stages})",
            f"boundaries killed at: {len(self.boundaries)}",
            f"deliveries {self.deliveries}: lost {self.lost}, doubled {self.doubled}, "
            f"different {self.different}",
            f"takeovers from a sleeping run {self.takeovers}, wrong {len(self.takeovers_wrong)}",
            *self.takeovers_wrong,
            f"pairs of runs {self.pairs}, wrong {len(self.pairs_wrong)}",
            *self.pairs_wrong,
        ]


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it has started, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def watch_until(
    process: subprocess.Popen[bytes], lake: Path, stop: Callable[[int, str], bool]
) -> list[str]:
    """The changes that a process makes, killed at the first for which stop(number, change)."""
    watch = Watch(lake)
    seen: list[str] = []
    while process.poll() is None:
        for change in watch.changes():
            seen.append(change)
            if stop(len(seen), change):
                kill(process)
                return seen
        time.sleep(0.002)
    return seen + watch.changes()


def stage_of(change: str) -> str:
    return change.split(":")[0]


def kill_at_change(lake: Lake, number: int, score: Score, *arguments: str) -> bool:
    """Start a command and kill it after its change of a number; False where it ended before."""
    process = lake.start(*arguments)
    seen = watch_until(process, lake.lake, lambda count, _: count == number)
    score.runs += 1
    if len(seen) < number or process.returncode != -signal.SIGKILL:
        return False
    score.kills += 1
    score.kills_by_stage[stage_of(seen[-1])] += 1
    score.boundaries[seen[-1]] += 1
    return True


def kill_at_random(lake: Lake, seconds: float, score: Score, *arguments: str) -> None:
    """Start a command and kill it after some seconds, unless it has ended by itself."""
    process = lake.start(*arguments)
    watch = Watch(lake.lake)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        seen = watch.changes()
        score.kills += 1
        score.kills_by_stage[stage_of(seen[-1]) if seen else "before any change"] += 1
    score.runs += 1


# ---- the story


def cut_feed(folder: Path, pieces: int, rows: int) -> list[Path]:
    """The first rows of the demo feed, in the order of their receipt, in files to be landed."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(FEED, "rt", encoding="utf-8") as file:
        lines = [line for _, line in zip(range(rows), file, strict=False)]
    files = []
    for number in range(pieces):
        path = folder / f"piece_{number}.jsonl"
        path.write_text("".join(lines[number * rows // pieces : (number + 1) * rows // pieces]))
        files.append(path)
    return files


def undisturbed(folder: Path, pieces: Sequence[Path]) -> Lake:
    """The same landings and one run after each, with nobody killed."""
    lake = Lake(folder, pieces)
    lake.finish(*SEED)
    for piece in pieces:
        lake.finish(*LAND, str(piece))
        lake.finish(*DECIDE)
    return lake


def compare(lake: Lake, wanted: Lake, score: Score) -> None:
    """Count decisions and entries that are missing, there twice, or others."""
    for found, expected in (
        (lake.decisions(), wanted.decisions()),
        (lake.entries(), wanted.entries()),
    ):
        identities = Counter({row[:2]: n for row, n in _summed(found).items()})
        for identity, count in _summed(expected).items():
            score.lost += max(count - identities[identity], 0)
            score.doubled += max(identities[identity] - count, 0)
        score.different += sum((found - expected).values())
    score.deliveries += len(lake.table("document_status"))


def _summed(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    summed: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        summed[row[:2]] += count
    return summed


def torture(
    folder: Path,
    *,
    kills: int,
    pairs: int,
    takeovers: int,
    boundaries: bool,
    seed: int,
    pieces: int = 4,
    rows: int = 800,
    say: Callable[[str], None] = print,
) -> Score:
    """Kill, start again, compare."""
    chance = random.Random(seed)
    score = Score()
    files = cut_feed(folder / "feed", pieces, rows)
    say("a lake where nobody is killed")
    wanted = undisturbed(folder / "undisturbed", files)
    lake = Lake(folder / "tortured", files)
    plan = list(_plan(chance, kills, boundaries))
    for number, piece in enumerate(files):
        lake.finish(*SEED) if number == 0 else None
        for command, moment in plan[number :: len(files)]:
            arguments = [*command, str(piece)] if command is LAND else command
            if isinstance(moment, int):
                kill_at_change(lake, moment, score, *arguments)
            else:
                kill_at_random(lake, moment, score, *arguments)
            say(f"{score.kills} kills")
        lake.finish(*SEED)
        lake.finish(*LAND, str(piece))
        if number < takeovers:
            wake_after_takeover(lake, chance.randint(2, 30), score)
        lake.finish(*DECIDE)
        score.runs += 1
    compare(lake, wanted, score)
    for _ in range(pairs):
        start_two(lake, score)
        say(f"{score.pairs} pairs")
    return score


def _plan(
    chance: random.Random, kills: int, boundaries: bool
) -> Iterator[tuple[tuple[str, ...], int | float]]:
    """Which command is killed, and when: after a change of a number, or after some seconds."""
    commands = [DECIDE] * 6 + [LAND, SEED, UPKEEP]
    if boundaries:
        for number in range(1, 60):
            yield DECIDE, number
    for _ in range(kills):
        command = chance.choice(commands)
        if command is DECIDE and chance.random() < 0.6:
            yield command, chance.randint(1, 40)
        elif command is DECIDE:
            yield command, chance.uniform(4, 25)
        else:
            yield command, chance.randint(1, 3)


def start_two(lake: Lake, score: Score) -> None:
    """Two runs at the same moment: one publishes or finds nothing new, the other says why not."""
    before = len(lake.said())
    two = [lake.start(*DECIDE) for _ in range(2)]
    codes = sorted(process.wait() == 0 for process in two)
    said = lake.said()[before:]
    score.pairs += 1
    score.runs += 2
    explained = "is at work since" in said or "took the lock over first" in said
    if codes == [True, True] and not explained:
        return  # the first had ended before the second took the lock
    if codes != [False, True] or not explained:
        score.pairs_wrong.append(f"pair {score.pairs}: {codes}, {said[-300:]}")


def wake_after_takeover(lake: Lake, change: int, score: Score) -> None:
    """A run sleeps past its time-out while another takes over; woken, it publishes nothing."""
    sleeper = lake.start(*DECIDE)
    watch = Watch(lake.lake)
    seen = 0
    while sleeper.poll() is None and seen < change:
        seen += len(watch.changes())
        time.sleep(0.002)
    os.killpg(sleeper.pid, signal.SIGSTOP)
    try:
        lake.finish(*DECIDE, run_timeout=0)
        published = _mains(lake)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(sleeper.pid, signal.SIGCONT)
    code = sleeper.wait()
    score.runs += 2
    score.takeovers += 1
    if code == 0 or _mains(lake) != published:
        score.takeovers_wrong.append(f"woken after change {change}: exit {code}")


def _mains(lake: Lake) -> dict[str, int | None]:
    """Where main of each table stands."""
    locations = Watch(lake.lake)._seen
    return {
        name: _refs(location).get("main") for name, location in locations.items() if name in LEDGERS
    }


def write_csv(score: Score, path: Path) -> None:
    """Kills by boundary, for the docs."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["boundary", "kills"])
        writer.writerows(sorted(score.boundaries.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--takeovers", type=int, default=4, help="at most one for each landing")
    parser.add_argument("--boundaries", action="store_true", help="also one kill at every change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="write the kills by boundary there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torture_") as folder:
        score = torture(
            Path(folder),
            kills=arguments.kills,
            pairs=arguments.pairs,
            takeovers=arguments.takeovers,
            boundaries=arguments.boundaries,
            seed=arguments.seed,
        )
    print("\n".join(score.lines()))
    if arguments.csv:
        write_csv(score, arguments.csv)
    wrong = [score.lost, score.doubled, score.different, *score.pairs_wrong, *score.takeovers_wrong]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
