"""The moments at which `make torture` kills a process, and what goes wrong in it before.

Each of MOMENTS makes one, by chance. A round takes the next of them, and may let a second fault
happen in the same process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from faults import EFFECTS, LEDGERS
from watched_lake import DECIDE, STAGE_OF_COMMAND

# two days behind the demo feed, and two days ahead of this machine
BEHIND, AHEAD = "2026-11-18T23:00:00+00:00", "+2"
# what a run or a service publishes
NO_LEDGERS = {"document_history", "executions_of_others", "opened_this_run"}
PUBLISHED = (*sorted({*LEDGERS} - NO_LEDGERS), *EFFECTS, "trigger_executions")
STAGES = (
    "branch writes",
    "takeover",
    "tests",
    "publication",
    "recovery",
    "effects",
    "",
    *STAGE_OF_COMMAND.values(),
)
# a run makes about so many changes in a stage
CHANGES = {"branch writes": 8, "publication": 7, "effects": 9, "upkeep of a run": 12}


@dataclass(frozen=True)
class Moment:
    """When a command is killed: after a change of some words, somewhere in a stage, or behind a
    text that it has said."""

    command: tuple[str, ...] = DECIDE
    # of a change, with its stage: "publication: document_status published"
    change: str | None = None
    stage: str | None = None
    said: str | None = None
    # so many changes into the stage, and so many seconds later
    number: int = 1
    seconds: float = 0.0
    # what goes wrong in the process, see faults.FAULTS
    faults: Mapping[str, str] = field(default_factory=dict)
    # whether the run ends with upkeep
    has_upkeep: bool = False
    # a kill that comes before
    after: Moment | None = None
    # the kind of it, for the figures
    kind: str = "kill"


def kill(chance: random.Random, number: int) -> Moment:
    """A kill in each stage in turn, anywhere within it."""
    stage = STAGES[number % len(STAGES)]
    for command, of_command in STAGE_OF_COMMAND.items():
        if stage == of_command:
            return Moment(command, stage=stage, seconds=chance.uniform(0, 0.1))
    return in_stage(chance, stage)


def in_stage(chance: random.Random, stage: str) -> Moment:
    """A kill somewhere in a stage of a run, with the kill that brings a run there."""
    if not stage:
        return Moment(number=0, seconds=chance.uniform(2, 20))
    after = None
    if stage == "takeover":
        after = in_stage(chance, chance.choice(("branch writes", "publication", "effects")))
    if stage == "recovery":
        after = Moment(stage="publication", number=chance.randint(1, 7))
    return Moment(
        stage=stage,
        number=chance.randint(1, CHANGES.get(stage, 1)),
        seconds=chance.uniform(0, 1 if stage == "tests" else 0.05),
        has_upkeep=stage == "upkeep of a run",
        after=after,
    )


def fast_forward_fails(chance: random.Random, number: int) -> Moment:
    """The publication of each table fails in turn, in a run that ends with upkeep all the same."""
    table = PUBLISHED[number % len(PUBLISHED)]
    return Moment(
        said=f"the publication of {table} fails",
        seconds=chance.choice((0, chance.uniform(0, 6))),
        faults={"fast_forward": table},
        has_upkeep=chance.random() < 0.6,
    )


def upkeep_at_each_run(chance: random.Random, number: int) -> Moment:
    """A run that ends with upkeep, after one whose upkeep was killed."""
    stage = chance.choice(("publication", "effects", "recovery", "upkeep of a run"))
    before = replace(in_stage(chance, "upkeep of a run"), kind="upkeep")
    moment = in_stage(chance, stage)
    return replace(moment, has_upkeep=True, after=moment.after or before)


def snapshots_expire(chance: random.Random, number: int) -> Moment:
    """Another program forgets snapshots between two runs, or while one is at work."""
    place = ("before", "at work", "before", "at publication")[number % 4]
    faults = {"expire": place}
    if place != "before":
        seconds = chance.uniform(0, 3)
        return Moment(said=f"snapshots expired {place}", seconds=seconds, faults=faults)
    stages = ("branch writes", "tests", "publication", "recovery", "effects", "takeover")
    moment = replace(in_stage(chance, chance.choice(stages)), faults=faults)
    if chance.random() < 0.5:
        moment = replace(moment, after=in_stage(chance, "upkeep of a run"))
    return moment


def clock_is_wrong(chance: random.Random, number: int) -> Moment:
    """The clock of a run is two days behind the feed, or two days ahead."""
    stages = ("branch writes", "publication", "effects", "recovery")
    moment = in_stage(chance, chance.choice(stages))
    return replace(moment, faults={"clock": (AHEAD, BEHIND)[number % 2]})


def insert_is_slow(chance: random.Random, number: int) -> Moment:
    """A run is taken over while the insert of its service is at work; the next one is killed."""
    stages = ("takeover", "branch writes", "publication", "effects")
    moment = in_stage(chance, stages[number % len(stages)])
    return replace(moment, faults={"slow_insert": ""}, after=None)


MOMENTS: tuple[Callable[[random.Random, int], Moment], ...] = (
    kill,
    fast_forward_fails,
    upkeep_at_each_run,
    snapshots_expire,
    clock_is_wrong,
    insert_is_slow,
)


def random_moments(chance: random.Random, number: int) -> Iterator[Moment]:
    """So many moments, each kind as often as another, in an order of chance."""
    kinds: list[Callable[[random.Random, int], Moment]] = []
    for place in range(number):
        if not kinds:
            kinds = chance.sample(MOMENTS, len(MOMENTS))
        kind = kinds.pop()
        moment = replace(kind(chance, place // len(MOMENTS)), kind=kind.__name__)
        yield combined(chance, moment) if chance.random() < 0.3 else moment


def combined(chance: random.Random, moment: Moment) -> Moment:
    """A moment with one fault more, where it is one of a run and has not that fault."""
    # what happens before the run begins stops it nowhere, so the moment is met
    more = {"expire": "before"} if chance.random() < 0.5 else clock_is_wrong(chance, 1).faults
    if moment.command != DECIDE or "slow_insert" in moment.faults:
        return moment
    return replace(moment, faults={**more, **moment.faults})
