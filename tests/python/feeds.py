"""Random feeds for property tests: whole scenarios of several runs, made to collide.

`random_scenario(seed)` gives the same scenario for a seed on every machine. `scenarios()` is the
hypothesis strategy over the same generator, which lets hypothesis shrink what fails. What a
service reports or a person resubmits depends on what earlier runs have decided, so a scenario is
made by playing it to the reference model; it holds only inputs, no results.

Left out on purpose, because the decision rules do not settle it: several commands and retry
failures of one instant, a document that fails its last attempt and succeeds in the same landing,
and a change of retry settings or `start_from` of a known trigger. `landed_at` rises from row to
row, so that what landed first is never in question.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st
from reference_model import (
    RESUBMITTABLE,
    Command,
    Condition,
    Delivery,
    Execution,
    OpenDocument,
    Resubmission,
    RunResult,
    Simulator,
    TransientError,
    Transport,
    Trigger,
)

START = datetime(2024, 3, 1, 12, 0, tzinfo=timezone.utc)
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def shipped_transports() -> list[Transport]:
    """The project's seed, so that its counting rules stand in one place."""
    seed = Path(__file__).parents[2] / "seeds" / "transports.csv"
    with seed.open(encoding="utf-8", newline="") as file:
        return [
            Transport(
                row["transport"],
                row["api"],
                row["counts_deliveries"] == "true",
                int(row["first_delivery_count"]) if row["first_delivery_count"] else None,
            )
            for row in csv.DictReader(file)
        ]


TRANSPORTS = shipped_transports()
MSG_TRANSPORTS = [t.transport for t in TRANSPORTS if t.api == "MSG"]
DOCUMENT_TYPES = ("orders:placed", "orders:cancelled", "Zürich:rechnung")
LIKELY_DOCUMENT_TYPES = DOCUMENT_TYPES + DOCUMENT_TYPES[:1] * 5
UNKNOWN_DOCUMENT_TYPE = "nobody:wants"
TRIGGER_NAMES = ("sales:orders", "Sales:Orders", "stock:reserve", "émail:send", "z😀:last")
KEYS = (
    "k1",
    "k2",
    "K1",
    " k1",
    "schlüssel-é",
    "k" * 96,
    "k" * 97,
    "😀" * 96,
    "😀" * 97,
)
LIKELY_KEYS = KEYS[:2]
RESOLVER = "answer_in_document"
ANSWERS = ("NEW", "DUPLICATE", "IN_DOUBT", "TRANSIENT_ERROR", "ERROR", "perhaps")


# Filters, in SQL and in Python ------------------------------------------------------------------


def order_field(delivery: Delivery, name: str) -> object:
    """`%order/name%`; None where the document does not have it."""
    try:
        document = json.loads(delivery.document or "")
    except ValueError:
        return None
    order = document.get("order") if isinstance(document, dict) else None
    return order.get(name) if isinstance(order, dict) else None


def total_above_100(delivery: Delivery) -> bool:
    """Null is not true."""
    total = order_field(delivery, "total")
    return isinstance(total, (int, float)) and total > 100


def number_is_a1(delivery: Delivery) -> bool:
    """Compared as text."""
    return order_field(delivery, "number") == "A1"


def never_redelivered(delivery: Delivery) -> bool:
    """Null is not true."""
    return delivery.redelivery_count == 0


def large_or_without_uuid(delivery: Delivery) -> bool:
    """An empty uuid is not null."""
    return total_above_100(delivery) or delivery.uuid is None


FILTERS: tuple[tuple[str, Callable[[Delivery], bool]], ...] = (
    ("%order/total:double% > 100", total_above_100),
    ("%order/number% = 'A1'", number_is_a1),
    ("redelivery_count = 0", never_redelivered),
    ("%order/total:double% > 100 or uuid is null", large_or_without_uuid),
)


def order_number(delivery: Delivery) -> str | None:
    """As text."""
    number = order_field(delivery, "number")
    return None if number is None else str(number)


def digest(delivery: Delivery) -> str | None:
    """Null where there is no document."""
    if delivery.document is None:
        return None
    return hashlib.sha256(delivery.document.encode()).hexdigest()


def uuid_and_number(delivery: Delivery) -> str:
    """What is null is left out."""
    parts = [delivery.uuid, order_number(delivery)]
    return "-".join(part for part in parts if part is not None)


KEY_EXPRESSIONS: tuple[tuple[str, Callable[[Delivery], str | None]], ...] = (
    ("%order/number%", order_number),
    ("sha2(document, 256)", digest),
    ("concat_ws('-', uuid, %order/number%)", uuid_and_number),
)


def answer_in_document(delivery: Delivery) -> tuple[str, str]:
    """A resolver that does what the document itself says; NEW where it says nothing.

    `udfs/answer_in_document.py` is the same for Spark.
    """
    try:
        document = json.loads(delivery.document or "")
    except ValueError:
        document = None
    answer = document.get("answer") if isinstance(document, dict) else None
    message = f"the document says {answer}"
    if answer == "TRANSIENT_ERROR":
        raise TransientError(message)
    if answer == "ERROR":
        raise ValueError(message)
    return (answer or "NEW"), message


# Scenarios --------------------------------------------------------------------------------------


@dataclass
class RunInput:
    """What one run is given; the fields are the arguments of `Simulator.run`."""

    clock: datetime
    deliveries: list[Delivery] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    resubmissions: list[Resubmission] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    history_unavailable: bool = False
    triggers: list[Trigger] | None = None
    conditions: list[Condition] | None = None

    def arguments(self) -> dict[str, Any]:
        """For `Simulator.run(**...)`."""
        return {column.name: getattr(self, column.name) for column in fields(self)}


@dataclass
class Scenario:
    """A configuration and the runs over it. Times and durations in milliseconds, as vars."""

    triggers: list[Trigger]
    conditions: list[Condition]
    transports: list[Transport]
    variables: dict[str, int]
    runs: list[RunInput] = field(default_factory=list)

    def simulator(
        self, answer: Callable[[Delivery], tuple[str, str]] = answer_in_document
    ) -> Simulator:
        """A fresh reference model of this configuration, with that resolver."""
        return Simulator(
            self.triggers,
            self.conditions,
            self.transports,
            resolvers={RESOLVER: answer},
            clock_skew_tolerance_ms=self.variables["clock_skew_tolerance_ms"],
            allowed_lateness_ms=self.variables["allowed_lateness_ms"],
            removal_hold_days=self.variables["removal_hold_days"],
            max_recoveries=self.variables["max_recoveries"],
        )

    def play(self) -> list[RunResult]:
        """What the reference model says of every run."""
        simulator = self.simulator()
        return [simulator.run(**run.arguments()) for run in self.runs]


def random_scenario(
    seed: int, *, resolvers: bool = False, runs: int = 5, deliveries: int = 14
) -> Scenario:
    """The scenario of a seed: up to `runs` runs, each of up to `deliveries` deliveries."""
    return _Generator(Random(seed), resolvers, runs, deliveries).scenario()


@st.composite
def scenarios(
    draw: st.DrawFn, *, resolvers: bool = False, runs: int = 4, deliveries: int = 8
) -> Scenario:
    """Scenarios for hypothesis; smaller than the seeded ones, so that it can shrink them."""
    random = draw(st.randoms(note_method_calls=False, use_true_random=False))
    return _Generator(random, resolvers, runs, deliveries).scenario()


class _Generator:
    """Makes one scenario, drawing all chance from `random`."""

    def __init__(self, random: Random, resolvers: bool, runs: int, deliveries: int) -> None:
        self.random = random
        self.resolvers = resolvers
        self.max_runs = runs
        self.max_deliveries = deliveries
        self.clock = START
        self.previous_clock = START - timedelta(hours=1)
        self.number = 0
        self.instants: set[datetime] = set()
        self.sent: list[Delivery] = []
        self.in_doubt: list[tuple[str, str]] = []
        self.landed_at = START

    def scenario(self) -> Scenario:
        """Play run by run, so that executions and resubmissions find what earlier runs left."""
        names = self.random.sample(TRIGGER_NAMES, self.random.randint(1, len(TRIGGER_NAMES)))
        triggers = [self._trigger(name) for name in names]
        conditions = [c for trigger in triggers for c in self._conditions(trigger)]
        self.scenario_so_far = Scenario(triggers, conditions, TRANSPORTS, self._variables())
        self.simulator = self.scenario_so_far.simulator()
        for number in range(self.random.randint(1, self.max_runs)):
            run = self._run(first=number == 0)
            result = self.simulator.run(**run.arguments())
            self.scenario_so_far.runs.append(run)
            doubtful = [d for d in result.decisions if d.status == "IN_DOUBT"]
            self.in_doubt += [(d.delivery_id, d.trigger_name) for d in doubtful]
        return self.scenario_so_far

    # Chance -------------------------------------------------------------------------------------

    def _often(self) -> bool:
        return self.random.randint(1, 10) <= 7

    def _sometimes(self) -> bool:
        return self.random.randint(1, 10) >= 8

    def _seldom(self) -> bool:
        return self.random.randint(1, 20) == 20

    def _next_number(self) -> int:
        self.number += 1
        return self.number

    def _instant_since_last_run(self) -> datetime:
        """An instant between two runs that nothing else has."""
        span = int((self.clock - self.previous_clock) / timedelta(milliseconds=1))
        instant = self.previous_clock + timedelta(milliseconds=self.random.randint(0, span))
        while instant in self.instants:
            instant += timedelta(milliseconds=1)
        self.instants.add(instant)
        return instant

    # Configuration ------------------------------------------------------------------------------

    def _variables(self) -> dict[str, int]:
        choose = self.random.choice
        return {
            "clock_skew_tolerance_ms": choose([0, 0, 1, SECOND, 10 * MINUTE]),
            "allowed_lateness_ms": choose([DAY, DAY, HOUR, 0]),
            "removal_hold_days": choose([30, 30, 1, 0]),
            "max_recoveries": choose([100, 100, 2, 1, 0]),
        }

    def _trigger(self, name: str) -> Trigger:
        choose = self.random.choice
        detects = not self._seldom()
        key, key_function = choose(KEY_EXPRESSIONS) if self._seldom() else (None, None)
        return Trigger(
            trigger_name=name,
            enabled=not self._seldom(),
            api=choose(["MSG", "MSG", "MSG", "JMS"]),
            acknowledgement_mode=choose(
                ["CLIENT_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "TRANSACTED", "AUTO_ACKNOWLEDGE"]
            ),
            processing_mode=choose(["serial", "concurrent"]),
            detect_duplicates=detects,
            use_history=self._often(),
            history_time_to_live_ms=choose(
                [2 * HOUR, 2 * HOUR, 6 * HOUR, 10 * MINUTE, SECOND, 1, 0]
            ),
            resolver=RESOLVER if self.resolvers and self._often() else None,
            suspend_on_preprocessing_error=self._sometimes(),
            max_retry_attempts=choose([0, 0, 1, 2]),
            on_retry_failure=choose(["throw", "throw", "suspend"]),
            execution_timeout_ms=choose([1, SECOND, HOUR, HOUR, DAY]),
            queue_capacity=choose([0] * 8 + [1, 2, 5]),
            start_from=self._start_from(),
            key=key,
            key_function=key_function,
        )

    def _start_from(self) -> datetime | None:
        back = self.random.choice([None] * 8 + [0, 30, 180])
        return None if back is None else self.clock - timedelta(minutes=back)

    def _conditions(self, trigger: Trigger) -> list[Condition]:
        conditions = []
        for position in range(1, self.random.randint(1, 4) + 1):
            sql, function = (None, None) if self._often() else self.random.choice(FILTERS)
            conditions.append(
                Condition(
                    trigger_name=trigger.trigger_name,
                    position=position,
                    condition_name=f"condition {position}",
                    document_type=self.random.choice(LIKELY_DOCUMENT_TYPES),
                    filter=function,
                    filter_sql=sql,
                    service=f"service_{position}" if self._often() else None,
                )
            )
        return conditions

    def _reconfigure(self, run: RunInput) -> None:
        """Add, take away or change a trigger."""
        triggers = list(self.simulator.triggers)
        unused = [n for n in TRIGGER_NAMES if n not in self.simulator.records]
        if unused and self._sometimes():
            added = self._trigger(unused[0])
            triggers.append(added)
            run.conditions = self.simulator.conditions + self._conditions(added)
        elif len(triggers) > 1 and self._seldom():
            triggers.pop(self.random.randrange(len(triggers)))
        elif triggers:
            position = self.random.randrange(len(triggers))
            triggers[position] = self._changed(triggers[position])
        run.triggers = triggers

    def _changed(self, trigger: Trigger) -> Trigger:
        other = self._trigger(trigger.trigger_name)
        names = [
            ("enabled",),
            ("api",),
            ("acknowledgement_mode",),
            ("processing_mode",),
            ("detect_duplicates",),
            ("use_history",),
            ("history_time_to_live_ms",),
            ("resolver",),
            ("suspend_on_preprocessing_error",),
            ("max_retry_attempts",),
            ("on_retry_failure",),
            ("execution_timeout_ms",),
            ("queue_capacity",),
            ("key", "key_function"),
        ]
        changed = {name: getattr(other, name) for name in self.random.choice(names)}
        return replace(trigger, **changed)

    # Runs ---------------------------------------------------------------------------------------

    def _run(self, first: bool) -> RunInput:
        if not first:
            self.previous_clock = self.clock
            steps = [1, 10 * SECOND, MINUTE, HOUR, HOUR, 3 * HOUR, DAY, 3 * DAY]
            self.clock += timedelta(milliseconds=self.random.choice(steps))
        run = RunInput(self.clock, history_unavailable=self._seldom())
        if not first and self._sometimes():
            self._reconfigure(run)
        times = [self._received_at() for _ in range(self.random.randint(1, 4))]
        for _ in range(self.random.randint(0, self.max_deliveries)):
            run.deliveries += self._landing(times)
        for identity in sorted(self.simulator.open_documents):
            run.executions += self._executions(self.simulator.open_documents[identity])
        run.executions += self._stray_execution(run.deliveries) if self._sometimes() else []
        run.commands = self._commands()
        run.resubmissions = self._resubmissions()
        return run

    def _received_at(self) -> datetime:
        """Mostly recent, at times late by hours or days, or from a clock that is ahead."""
        back = self.random.choice([0, 1, SECOND, MINUTE, HOUR, 3 * HOUR, DAY, 4 * DAY, -MINUTE])
        return self.clock - timedelta(milliseconds=back)

    def _landed_at(self) -> datetime:
        """After everything that has landed before, and after the last run."""
        self.landed_at = max(self.landed_at + timedelta(milliseconds=1), self.previous_clock)
        return self.landed_at

    # Deliveries ---------------------------------------------------------------------------------

    def _landing(self, times: list[datetime]) -> list[Delivery]:
        """One delivery, at times with a repeated or conflicting one of the same id."""
        delivery = self._spoiled(self._delivery(times)) if self._seldom() else self._delivery(times)
        rows = [delivery]
        if self.sent and self._seldom():
            rows.append(replace(self.random.choice(self.sent), landed_at=self._landed_at()))
        if self._seldom():
            rows.append(replace(delivery, landed_at=self._landed_at(), errors_to="someone:else"))
        self.sent += rows
        return rows

    def _delivery(self, times: list[datetime]) -> Delivery:
        number = self._next_number()
        choose = self.random.choice
        uuid, track_id, event_id = self._ids()
        return Delivery(
            delivery_id=choose(["d{}", "d{}", "D{}", "é{}", "😀{}"]).format(number),
            received_at=choose(times),
            landed_at=None if self._seldom() else self._landed_at(),
            transport="JMS" if self._seldom() or self._seldom() else choose(MSG_TRANSPORTS),
            document_type=UNKNOWN_DOCUMENT_TYPE
            if self._seldom()
            else choose(LIKELY_DOCUMENT_TYPES),
            destination=self._destination(),
            guaranteed=not self._seldom(),
            uuid=uuid,
            track_id=track_id,
            event_id=event_id,
            redelivery_count=choose([None, -1, 0, 0, 1, 1, 2]),
            document=self._document(),
        )

    def _ids(self) -> tuple[str | None, str | None, str | None]:
        ids: list[str | None] = [self._key(), self._key(), self._key()]
        for position in range(3):
            if self._sometimes():
                ids[position] = self.random.choice([None, ""])
        if self._seldom():
            ids = [None, "", None]
        return ids[0], ids[1], ids[2]

    def _key(self) -> str:
        return self.random.choice(LIKELY_KEYS if self._often() else KEYS)

    def _destination(self) -> str | None:
        if not self._seldom():
            return None
        return self.random.choice(
            [*sorted(t.trigger_name for t in self.simulator.triggers), "no:such"]
        )

    def _document(self) -> str | None:
        if self._seldom():
            return self.random.choice([None, "", "not JSON", "[]", '{"order": 5}'])
        order: dict[str, object] = {"number": self.random.choice(["A1", "B2"])}
        if self._often():
            order["total"] = self.random.choice([99.5, 100, 100.01, 250, None])
        document: dict[str, object] = {"order": order}
        if self._often():
            document["answer"] = self.random.choice(ANSWERS)
        return json.dumps(document)

    def _spoiled(self, delivery: Delivery) -> Delivery:
        number = self._next_number()
        return self.random.choice(
            [
                replace(delivery, delivery_id=None),
                replace(delivery, received_at=None),
                replace(delivery, transport="PIGEON"),
                replace(delivery, guaranteed=None),
                replace(delivery, delivery_id=f"d{number}/recovery-1"),
                replace(delivery, delivery_id=f"d{number}/resubmission-1"),
            ]
        )

    # Executions ---------------------------------------------------------------------------------

    def _executions(self, document: OpenDocument) -> list[Execution]:
        """What the service of an open document says before the run, which may be nothing."""
        settings = self.simulator.records[document.arrival.trigger_name].settings
        rows = []
        if self._often():
            attempt = document.attempts + 1
            rows.append(self._execution(document, "STARTED", attempt))
            ending = self.random.choice([None, None, "SUCCESS", "SUCCESS", "ERROR", "TRANSIENT"])
            if ending == "TRANSIENT":
                rows += self._transient_errors(document, attempt, settings)
            elif ending:
                rows.append(self._execution(document, ending, attempt, after=rows[0]))
        elif self._seldom():
            rows.append(self._execution(document, "SUCCESS", document.attempts + 1))
        return rows

    def _transient_errors(
        self, document: OpenDocument, attempt: int, settings: Trigger
    ) -> list[Execution]:
        """One failed attempt, or all that are left to it."""
        last = settings.max_retry_attempts + 1 if self._sometimes() else attempt
        attempts = range(attempt, max(attempt, last) + 1)
        return [self._execution(document, "TRANSIENT_ERROR", a) for a in attempts]

    def _execution(
        self, document: OpenDocument, event: str, attempt: int, after: Execution | None = None
    ) -> Execution:
        recorded_at = self._instant_since_last_run()
        if after:
            recorded_at = max(recorded_at, after.recorded_at)
        started_at = after.started_at if after else recorded_at - timedelta(milliseconds=5)
        return Execution(
            execution_id=f"e{self._next_number()}",
            delivery_id=document.arrival.delivery_id,
            trigger_name=document.arrival.trigger_name,
            service=document.service,
            attempt=attempt,
            event=event,
            started_at=started_at,
            ended_at=None if event == "STARTED" else recorded_at,
            recorded_at=recorded_at,
        )

    def _stray_execution(self, landed: Sequence[Delivery]) -> list[Execution]:
        """A word about a document that is not open: it has ended, waits, or lands just now."""
        names = [trigger.trigger_name for trigger in self.simulator.triggers]
        ended = [
            i for i in sorted(self.simulator.statuses) if i not in self.simulator.open_documents
        ]
        undecided = [*sorted(self.simulator.waiting), ("nothing", names[0])]
        undecided += [(d.delivery_id, name) for d in landed if d.delivery_id for name in names]
        delivery_id, name = self.random.choice(self.random.choice([ended or undecided, undecided]))
        now = self._instant_since_last_run()
        number = self._next_number()
        return [
            Execution(
                f"e{number}", delivery_id, name, None, 1, "SUCCESS", now, now, recorded_at=now
            )
        ]

    # People -------------------------------------------------------------------------------------

    def _commands(self) -> list[Command]:
        commands = []
        for name, record in sorted(self.simulator.records.items()):
            if record.suspended_by and self._often():
                commands.append(self._command(name, "RESUME"))
            if self._seldom():
                commands.append(self._command(name, self.random.choice(["SUSPEND", "RESUME"])))
        if self._seldom():
            commands.append(self._command("no:such", "SUSPEND"))
        return commands

    def _command(self, trigger_name: str, command: str) -> Command:
        issued_at = self._instant_since_last_run()
        return Command(f"c{self._next_number()}", trigger_name, command, issued_at, "operator")

    def _resubmissions(self) -> list[Resubmission]:
        requests = []
        wanted = [identity for identity in self.in_doubt if self._sometimes()]
        for identity, outcome in sorted(self.simulator.outcomes.items()):
            if outcome in RESUBMITTABLE and self._seldom():
                wanted.append(identity)
        if self.simulator.statuses and self._seldom():
            wanted.append(self.random.choice(sorted(self.simulator.statuses)))
        for delivery_id, trigger_name in wanted:
            requests.append(
                Resubmission(
                    resubmission_id=f"r{self._next_number()}",
                    delivery_id=delivery_id,
                    trigger_name=trigger_name,
                    requested_at=self._instant_since_last_run(),
                    requested_by="operator",
                    document=self._document() if self._sometimes() else None,
                    force=self._sometimes() or None,
                )
            )
        return requests
