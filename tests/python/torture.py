"""Kills the project in every way and place, and counts what is lost, doubled or different.

    python tests/python/torture.py [--kills 60] [--pairs 15] [--takeovers 4] [--boundaries]

Real `dbt build`, `exactly-once land`, `dbt seed` and `maintain` processes work on a lake of their
own and are ended with SIGKILL: at random moments of each stage, and after each of the changes of
tables that a run makes, which is before the next one (the catalog's SQLite file, the tables'
metadata and what dbt prints are watched from outside, the product has no switches for it). What
else goes wrong in them is in moments.py: publications that fail, upkeep at each run, snapshots that
another program lets expire, clocks two days off, a service's insert slower than a takeover. What
was killed is started again until the queue is empty, then every decision is compared with the
reference model's, and every effect with the decisions. Runs are also put to sleep until another has
taken over, and woken: they must publish nothing. Pairs of runs start at the same moment: one
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
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from feeds import shipped_transports
from moments import Moment, random_moments
from reference_model import Delivery, Execution, Simulator
from watched_lake import (
    CONDITIONS,
    DECIDE,
    DECIDING,
    LAND,
    PROJECT_FOLDER,
    SEED,
    STAGE_OF_COMMAND,
    STATUS,
    TRIGGERS,
    WITH_UPKEEP,
    Lake,
    Watch,
    mains,
)

FEED = PROJECT_FOLDER / "demo" / "rabbitmq_orders.jsonl.gz"
ENTRY = ("trigger_name", "document_key", "processing_status", "delivery_id", "started_at")
WORK = ("delivery_id", "trigger_name")
# changes of every run that decides something
BEFORE_PUBLICATION = (
    "lock made",
    "document_status written",
    "history_ledger written",
    "published_runs written",
)
# a moment that is not met is tried so often
TRIALS = 3
# so many runs at most until nothing waits
LAST_RUNS = 5


# ---- killing


@dataclass
class Score:
    """What the rig has done and found."""

    runs: int = 0
    kills: int = 0
    kills_by_kind: Counter[str] = field(default_factory=Counter)
    kills_by_stage: Counter[str] = field(default_factory=Counter)
    boundaries: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    last: str = ""
    deliveries: int = 0
    effects: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    examples: list[str] = field(default_factory=list)
    takeovers: int = 0
    takeovers_wrong: list[str] = field(default_factory=list)
    pairs: int = 0
    pairs_wrong: list[str] = field(default_factory=list)

    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        counts = (self.lost, self.doubled, self.different)
        return not (any(counts) or self.pairs_wrong or self.takeovers_wrong)

    def lines(self) -> list[str]:
        return [
            f"runs {self.runs}, kills {self.kills} ({_listed(self.kills_by_kind)})",
            f"kills by stage: {_listed(self.kills_by_stage)}",
            f"kills at different changes of tables: {len(self.boundaries)}",
            f"faults that happened: {_listed(self.faults)}",
            f"moments that were not met: {len(self.missed)}",
            *self.missed,
            f"decisions {self.deliveries}, effects {self.effects}: lost {self.lost}, "
            f"doubled {self.doubled}, different {self.different}",
            *self.examples,
            f"takeovers from a sleeping run {self.takeovers}, wrong {len(self.takeovers_wrong)}",
            *self.takeovers_wrong,
            f"pairs of runs {self.pairs}, wrong {len(self.pairs_wrong)}",
            *self.pairs_wrong,
        ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def end_at_once(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it has started, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_at(lake: Lake, moment: Moment, score: Score, *arguments: str, **variables: Any) -> bool:
    """Start a command and kill it at a moment; False where it ended without having come to it."""
    watch = Watch(lake, STAGE_OF_COMMAND.get(moment.command, DECIDING[0]))
    if moment.has_upkeep:
        variables |= WITH_UPKEEP
    process = lake.start(*moment.command, *arguments, faults=moment.faults, **variables)
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
        if moment.said and watch.says(moment.said):
            seen.append(moment.said)
        if len(seen) >= moment.number:
            time.sleep(moment.seconds)
            break
        time.sleep(0.002)
    if process.poll() is not None:
        return False
    end_at_once(process)
    last = (watch.changes() or [last])[-1]
    score.kills += 1
    score.kills_by_kind[moment.kind] += 1
    score.kills_by_stage[stage_of(last)] += 1
    score.boundaries[last] += 1
    score.last = last
    return True


def changes_of(lake: Lake, *command: str, **variables: Any) -> list[str]:
    """The changes that a command makes that nobody kills."""
    watch = Watch(lake)
    process = lake.start(*command, **variables)
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


# ---- the feed, and what the reference model makes of it


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


def deliveries_of(files: Sequence[Path]) -> list[Delivery]:
    """The rows of pieces of the feed."""
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    times = ("received_at", "landed_at")
    return [
        Delivery(**{**row, **{name: datetime.fromisoformat(row[name]) for name in times}})
        for row in rows
    ]


def expected(files: Sequence[Path]) -> Simulator:
    """The reference model behind the feed: all of it landed at once, its service done."""
    clock = datetime.now(timezone.utc)
    times = {"started_at": clock, "ended_at": clock, "recorded_at": clock}
    simulator = Simulator(TRIGGERS, CONDITIONS, shipped_transports())
    simulator.run(clock, deliveries=deliveries_of(files))
    while simulator.open_documents:
        told = [
            Execution(f"{event} {trigger} {name}", name, trigger, event=event, **times)
            for name, trigger in simulator.open_documents
            for event in ("STARTED", "SUCCESS")
        ]
        simulator.run(clock, executions=told)
    return simulator


def compare(lake: Lake, score: Score) -> None:
    """Count decisions, entries of history and effects that are missing, there twice, or others."""
    simulator = expected(lake.landed)
    decisions = simulator.statuses.values()
    entries = [entry for of_key in simulator.history.values() for entry in of_key]
    new = [d for d in decisions if d.status in ("NEW", "NOT_CHECKED") and d.condition_name]
    for table, columns, wanted in (
        ("document_status", STATUS, decisions),
        ("document_history", ENTRY, entries),
        ("new_documents", WORK, new),
        ("booked_orders", WORK, [decision for decision in new if decision.service]),
    ):
        found = _comparable(lake.rows(table, *columns))
        wants = Counter(tuple(getattr(row, name) for name in columns) for row in wanted)
        wants = _comparable(wants)
        identities, wanted_identities = _summed(found), _summed(wants)
        score.lost += (wanted_identities - identities).total()
        score.doubled += (identities - wanted_identities).total()
        score.different += (found - wants).total()
        for row in [*(found - wants), *(wants - found)][:5]:
            score.examples.append(f"{table}: {found[row]} times instead of {wants[row]}: {row}")
    score.deliveries += len(decisions)
    score.effects += len(new)


def _comparable(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows without the time at which a service began, which each run has another."""
    served = {condition.trigger_name for condition in CONDITIONS if condition.service}
    return Counter(
        {
            tuple(x for x in row if not (row[0] in served and isinstance(x, datetime))): number
            for row, number in rows.items()
        }
    )


def _summed(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    summed: Counter[tuple[Any, ...]] = Counter()
    for row, count in rows.items():
        summed[row[:2]] += count
    return summed


# ---- the story


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
    pieces = 3 * len(moments) + takeovers + pairs + 90 * boundaries + 3
    lake = Lake(folder / "tortured", cut_feed(folder / "feed", min(pieces, rows), rows))
    lake.finish(*SEED)
    say(f"-- seed {seed}")
    if boundaries:
        say("-- a run that nobody kills")
        lake.land_where_all_is_decided()
        lake.finish(*DECIDE, **WITH_UPKEEP)
        lake.land_where_all_is_decided()
        changes = changes_of(lake, *DECIDE, **WITH_UPKEEP)
        moments = [*moments, *(Moment(change=change, has_upkeep=True) for change in changes)]
    for moment in moments:
        meet(lake, moment, score, say)
    for _ in range(takeovers):
        lake.land_where_all_is_decided()
        wake_after_takeover(lake, chance.choice(BEFORE_PUBLICATION), score)
        say(f"{score.takeovers} takeovers")
    for _ in range(pairs):
        lake.land_where_all_is_decided()
        start_two(lake, score)
        say(f"{score.pairs} pairs")
    finish(lake)
    score.faults = lake.faults()
    say("-- what the reference model decides")
    compare(lake, score)
    return score


def meet(lake: Lake, moment: Moment, score: Score, say: Callable[[str], None]) -> None:
    """Let a moment come, by some trials."""
    killed = take_over_slow_insert if "slow_insert" in moment.faults else kill_once
    for _ in range(TRIALS):
        began = time.monotonic()
        if killed(lake, moment, score):
            took = time.monotonic() - began
            say(f"{score.kills} kills, the last at {score.last} ({moment.kind}, {took:.0f} s)")
            return
    score.missed.append(str(moment))
    say(f"not met: {moment}")


def finish(lake: Lake) -> None:
    """Land what is left of the feed, and run until no document is open and no delivery waits."""
    lake.land_rest()
    for _ in range(LAST_RUNS):
        lake.finish(*DECIDE)
        if not lake.rows("open_documents", *WORK) + lake.rows("waiting_deliveries", *WORK):
            return
    raise RuntimeError(f"there is work left after {LAST_RUNS} runs:\n{lake.said()[-3000:]}")


def kill_once(lake: Lake, moment: Moment, score: Score) -> bool:
    """Start a command and kill it at a moment, with all that this needs before and after."""
    if moment.command == LAND:
        piece = str(lake.next_piece())
        is_killed = kill_at(lake, moment, score, piece)
        lake.finish(*LAND, piece)
        return is_killed
    lake.land_where_all_is_decided()
    if moment.after:
        kill_at(lake, replace(moment.after, kind=moment.kind), score)
        lake.land_where_all_is_decided()
    is_killed = kill_at(lake, moment, score)
    if moment.command == SEED:
        lake.finish(*SEED)
    return is_killed


def take_over_slow_insert(lake: Lake, moment: Moment, score: Score) -> bool:
    """A run is taken over while the insert of its service is at work; the run that has taken over
    is killed, the next one ends, and then the insert does: the first run publishes nothing."""
    lake.land_where_all_is_decided()
    hold = lake.folder / "hold"
    hold.touch()
    watch = Watch(lake)
    slow = lake.start(*DECIDE, faults={"slow_insert": str(hold)})
    score.runs += 2
    with asleep(slow, hold.unlink):
        while not watch.says("the insert of the service is at work"):
            if slow.poll() is not None:
                return False
            time.sleep(0.05)
        is_killed = kill_at(lake, replace(moment, faults={}), score, run_timeout=0)
        lake.finish(*DECIDE, run_timeout=0)
        published, booked = mains(lake), lake.rows("booked_orders", *WORK)
    code = slow.wait()
    score.takeovers += 1
    if mains(lake) != published or lake.rows("booked_orders", *WORK) != booked or code == 0:
        score.takeovers_wrong.append(f"a slow insert: exit {code}, {lake.said()[-300:]}")
    return is_killed


@contextmanager
def asleep(process: subprocess.Popen[bytes], wake: Callable[[], object]) -> Iterator[None]:
    """Wake a process behind the block, and end it where the block fails."""
    try:
        yield
    except BaseException:
        end_at_once(process)
        raise
    finally:
        wake()


def start_two(lake: Lake, score: Score) -> None:
    """Two runs at the same moment: one publishes or finds nothing new, the other says why not."""
    before = lake.log.stat().st_size
    two = [lake.start(*DECIDE) for _ in range(2)]
    codes = sorted(process.wait() == 0 for process in two)
    said = lake.said(before)
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

    def wake() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(sleeper.pid, signal.SIGCONT)

    with asleep(sleeper, wake):
        lake.finish(*DECIDE, run_timeout=0)
        published = mains(lake)
    code = sleeper.wait()
    score.runs += 2
    score.takeovers += 1
    if mains(lake) != published or code == 0:
        score.takeovers_wrong.append(f"woken after {change}: exit {code}")


def write_csv(score: Score, path: Path) -> None:
    """Kills by boundary, for the docs."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["boundary", "kills"])
        writer.writerows(sorted(score.boundaries.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="moments, at least as many kills")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--takeovers", type=int, default=5)
    parser.add_argument("--rows", type=int, default=4141, help="of the demo feed")
    parser.add_argument("--boundaries", action="store_true", help="also one kill at every change")
    parser.add_argument("--seed", type=int, help="of the moments; without it another each time")
    parser.add_argument("--csv", type=Path, help="write the kills by boundary there")
    parser.add_argument("--keep", type=Path, help="leave the lake in this folder")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**6)
    with tempfile.TemporaryDirectory(prefix="torture_") as folder:
        score = torture(
            arguments.keep or Path(folder),
            list(random_moments(random.Random(seed), arguments.kills)),
            pairs=arguments.pairs,
            takeovers=arguments.takeovers,
            seed=seed,
            rows=arguments.rows,
            boundaries=arguments.boundaries,
            say=lambda text: print(text, flush=True),
        )
    print("\n".join(score.lines()))
    if arguments.csv:
        write_csv(score, arguments.csv)
    return int(not score.is_clean())


if __name__ == "__main__":
    sys.exit(main())
