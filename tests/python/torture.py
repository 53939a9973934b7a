"""Kills the project in every way and place, and counts what is lost, doubled or different.

    python tests/python/torture.py [--kills 60] [--pairs 15] [--takeovers 4] [--boundaries]

Real `dbt build`, `exactly-once land`, `dbt seed` and `maintain` processes work on a lake of their
own and are ended with SIGKILL: at random moments of each stage, and after each of the changes of
tables that a run makes, which is before the next one (the catalog's SQLite file, the tables'
metadata and what dbt prints are watched from outside, the product has no switches for it). What was
killed is started again until the queue is empty, then every decision is compared with that of a
lake where nobody was killed. Runs are also put to sleep until another has taken over, and woken:
they must publish nothing. Pairs of runs start at the same moment: one publishes, the other
explains.
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
LAND, DECIDE = ("land",), ("build", "--selector", "hot_path")
# all of them are loaded, not those alone that have changed
SEED = ("seed", "--full-refresh")
UPKEEP = ("run-operation", "maintain")
STAGE_OF_COMMAND = {LAND: "landing", SEED: "seeds", UPKEEP: "upkeep"}


class Watch:
    """Sees each change of a table in a lake, from outside, and at which stage a process is."""

    def __init__(self, lake: Lake, stage: str = "before any change") -> None:
        self._lake = lake
        self._seen = table_locations(lake)
        self._said = lake.log.stat().st_size if lake.log.exists() else 0
        self._is_audited = False
        self.stage = stage

    def changes(self) -> list[str]:
        """What has changed since the last call: the stage, and the change in words."""
        now, before = table_locations(self._lake), self._seen
        self._seen = now
        # a lock that is taken over, or given back, is renamed; a buried one is forgotten later
        found = [
            "lock taken from a dead run" if name == LOCK else "buried lock forgotten"
            for name in sorted(before.keys() - now.keys())
        ]
        for name in sorted(now):
            if now[name] != before.get(name):
                found.append(self._in_words(name, before.get(name), now[name]))
        return [f"{self._stage_after(change)}: {change}" for change in found if change]

    def _in_words(self, name: str, before: str | None, now: str) -> str:
        if name.startswith(LOCK):
            return "lock made" if name == LOCK else ""
        old, new = _refs(before), _refs(now)
        if name in LEDGERS and old.get("main") != new.get("main"):
            return f"{name} published"
        runs = {ref for ref in new if ref.startswith("run_")}
        if any(old.get(ref) != new[ref] for ref in runs):
            return f"{name} written"
        if len(old) > len(new):
            return f"{name} lost a branch"
        return f"{name} changed"

    def _stage_after(self, change: str) -> str:
        """The stage that a `dbt build` has reached; that of other commands does not change."""
        if self.stage not in DECIDING:
            return self.stage
        if change.endswith("written"):
            self.stage = "branch writes"
        elif self.stage in ("branch writes", "tests") and change.endswith("published"):
            self.stage = "publication"
        elif self.stage == "before any change":
            self.stage = "takeover" if change.startswith("lock taken") else "lock"
        elif self.stage in ("takeover", "lock") and change.partition(" ")[0] in LEDGERS:
            self.stage = "recovery"
        return self.stage

    def tests(self) -> bool:
        """Whether a test of the run's writes has just started, the first one."""
        if self.stage != "branch writes" or self._is_audited:
            return False
        with self._lake.log.open("rb") as log:
            log.seek(self._said)
            self._is_audited = b"START test" in log.read()
        if self._is_audited:
            self.stage = "tests"
        return self._is_audited


DECIDING = (
    "before any change",
    "takeover",
    "lock",
    "recovery",
    "branch writes",
    "tests",
    "publication",
)
# changes of every run that decides something
BEFORE_PUBLICATION = (
    "lock made",
    "document_status written",
    "document_history written",
    "published_runs written",
)
LOCK = "run_lock"
LEDGERS = {path.stem for path in (PROJECT_FOLDER / "models" / "record").glob("*.sql")}


def table_locations(lake: Lake) -> dict[str, str]:
    """Where the catalog says that the metadata of each table is."""
    catalog = lake.lake / "catalog.db"
    while catalog.exists():
        try:
            with contextlib.closing(
                sqlite3.connect(f"file:{catalog}?mode=ro", uri=True, timeout=5)
            ) as connection:
                return dict(
                    connection.execute("select table_name, metadata_location from iceberg_tables")
                )
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                break
            # a writer was faster
            time.sleep(0.001)
    return {}


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
        self.lake = folder / "lake"
        self.log = folder / "log.txt"
        self._left = list(pieces)
        self.landed: list[Path] = []
        self.landed_at: int | None = None
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
        log = self.log.open("ab")
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
        return self.log.read_text(errors="replace")

    def next_piece(self) -> Path:
        """The next piece of the feed, to be landed now."""
        self.landed.append(self._left.pop(0))
        self.landed_at = mains(self).get("published_runs")
        return self.landed[-1]

    def land_where_all_is_decided(self) -> None:
        """Land the next piece, unless the last one is still to be decided."""
        if not self.landed or mains(self).get("published_runs") != self.landed_at:
            self.finish(*LAND, str(self.next_piece()))

    def land_rest(self) -> None:
        """Land what is left of the feed."""
        rest, self._left = self._left, []
        self.landed += rest
        self.finish(*LAND, *map(str, rest))

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
    missed: list[str] = field(default_factory=list)
    last: str = ""
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
            f"kills at different changes of tables: {len(self.boundaries)}",
            f"moments that were not met: {len(self.missed)}",
            *self.missed,
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


@dataclass(frozen=True)
class Moment:
    """When a command is killed: after a change of some words, or somewhere in a stage."""

    command: tuple[str, ...]
    # of a change, with its stage: "publication: document_status published"
    change: str | None = None
    stage: str | None = None
    # so many changes into the stage, and so many seconds later
    number: int = 1
    seconds: float = 0.0


def kill_at(lake: Lake, moment: Moment, score: Score, *arguments: str) -> bool:
    """Start a command and kill it at a moment; False where it ended without having come to it."""
    watch = Watch(lake, STAGE_OF_COMMAND.get(moment.command, DECIDING[0]))
    process = lake.start(*moment.command, *arguments)
    seen: list[str] = []
    last = f"{watch.stage}: nothing"
    score.runs += 1
    while process.poll() is None:
        changes = watch.changes()
        if watch.tests():
            changes.append("tests: the first has started")
        for change in changes:
            last = change
            if moment.change == change or stage_of(change) == moment.stage:
                seen.append(change)
        if len(seen) >= moment.number:
            time.sleep(moment.seconds)
            break
        time.sleep(0.002)
    if process.poll() is not None:
        return False
    kill(process)
    last = (watch.changes() or [last])[-1]
    score.kills += 1
    score.kills_by_stage[stage_of(last)] += 1
    score.boundaries[last] += 1
    score.last = last
    return True


def changes_of(lake: Lake, *command: str) -> list[str]:
    """The changes that a command makes that nobody kills."""
    watch = Watch(lake)
    process = lake.start(*command)
    seen: list[str] = []
    while process.poll() is None:
        seen += watch.changes()
        time.sleep(0.002)
    seen += watch.changes()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{lake.said()[-3000:]}")
    return list(dict.fromkeys(seen))


def stage_of(change: str) -> str:
    return change.partition(":")[0]


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
    """The same feed in a lake where nobody is killed: landed at once, decided in one run."""
    lake = Lake(folder, pieces)
    lake.finish(*SEED)
    lake.land_rest()
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
    moments: Sequence[Moment],
    *,
    pairs: int,
    takeovers: int,
    seed: int,
    rows: int,
    boundaries: bool = False,
    say: Callable[[str], None] = print,
) -> Score:
    """Kill, start again, compare."""
    chance = random.Random(seed)
    score = Score()
    # enough that there is something to decide at each kill
    pieces = 2 * len(moments) + takeovers + pairs + 60 * boundaries + 3
    files = cut_feed(folder / "feed", pieces, rows)
    lake = Lake(folder / "tortured", files)
    lake.finish(*SEED)
    if boundaries:
        say("-- a run that nobody kills")
        lake.land_where_all_is_decided()
        lake.finish(*DECIDE)
        lake.land_where_all_is_decided()
        changes = changes_of(lake, *DECIDE)
        moments = [*moments, *(Moment(DECIDE, change=change) for change in changes)]
    for moment in moments:
        for _ in range(3):
            if kill_once(lake, moment, score):
                say(f"{score.kills} kills, the last at {score.last}")
                break
        else:
            score.missed.append(str(moment))
    for _ in range(takeovers):
        lake.land_where_all_is_decided()
        wake_after_takeover(lake, chance.choice(BEFORE_PUBLICATION), score)
        say(f"{score.takeovers} takeovers")
    for _ in range(pairs):
        lake.land_where_all_is_decided()
        start_two(lake, score)
        say(f"{score.pairs} pairs")
    lake.land_rest()
    lake.finish(*DECIDE)
    say("-- a lake where nobody is killed")
    compare(lake, undisturbed(folder / "undisturbed", lake.landed), score)
    return score


def kill_once(lake: Lake, moment: Moment, score: Score) -> bool:
    """Start a command and kill it at a moment, with all that this needs before and after."""
    if moment.command == LAND:
        piece = str(lake.next_piece())
        is_killed = kill_at(lake, moment, score, piece)
        lake.finish(*LAND, piece)
        return is_killed
    lake.land_where_all_is_decided()
    if moment.stage in AFTER_A_KILL:
        kill_at(lake, AFTER_A_KILL[moment.stage], score)
    is_killed = kill_at(lake, moment, score)
    if moment.command == SEED:
        lake.finish(*SEED)
    return is_killed


# a stage that a run comes to where the run before it was killed: how
AFTER_A_KILL = {
    "takeover": Moment(DECIDE, stage="branch writes"),
    "recovery": Moment(DECIDE, stage="publication"),
}


def random_moments(chance: random.Random, kills: int) -> Iterator[Moment]:
    """Moments in every stage in turn, anywhere within it."""
    stages = ["branch writes", "takeover", "tests", "publication", "recovery", "takeover", ""]
    writes = {"branch writes": 8, "publication": 7}
    for number in range(kills):
        turn = number % (len(stages) + len(STAGE_OF_COMMAND))
        if turn >= len(stages):
            command, stage = list(STAGE_OF_COMMAND.items())[turn - len(stages)]
            yield Moment(command, stage=stage, seconds=chance.uniform(0, 0.1))
        elif stages[turn]:
            stage = stages[turn]
            seconds = chance.uniform(0, 1 if stage == "tests" else 0.05)
            change = chance.randint(1, writes.get(stage, 1))
            yield Moment(DECIDE, stage=stage, number=change, seconds=seconds)
        else:
            yield Moment(DECIDE, number=0, seconds=chance.uniform(2, 20))


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


def wake_after_takeover(lake: Lake, change: str, score: Score) -> None:
    """A run sleeps past its time-out while another takes over; woken, it publishes nothing."""
    watch = Watch(lake)
    sleeper = lake.start(*DECIDE)
    while not any(found.endswith(f": {change}") for found in watch.changes()):
        if sleeper.poll() is not None:
            score.missed.append(f"a run that sleeps after {change}")
            return
        time.sleep(0.002)
    os.killpg(sleeper.pid, signal.SIGSTOP)
    try:
        lake.finish(*DECIDE, run_timeout=0)
        published = mains(lake)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(sleeper.pid, signal.SIGCONT)
    code = sleeper.wait()
    score.runs += 2
    score.takeovers += 1
    if mains(lake) != published or code == 0:
        score.takeovers_wrong.append(f"woken after {change}: exit {code}")


def mains(lake: Lake) -> dict[str, int | None]:
    """Where main of each table stands."""
    locations = table_locations(lake)
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
    parser.add_argument("--takeovers", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4141, help="of the demo feed")
    parser.add_argument("--boundaries", action="store_true", help="also one kill at every change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="write the kills by boundary there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torture_") as folder:
        score = torture(
            Path(folder),
            list(random_moments(random.Random(arguments.seed), arguments.kills)),
            pairs=arguments.pairs,
            takeovers=arguments.takeovers,
            seed=arguments.seed,
            rows=arguments.rows,
            boundaries=arguments.boundaries,
        )
    print("\n".join(score.lines()))
    if arguments.csv:
        write_csv(score, arguments.csv)
    wrong = [score.lost, score.doubled, score.different, *score.pairs_wrong, *score.takeovers_wrong]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
