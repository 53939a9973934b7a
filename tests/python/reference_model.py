"""The decision rules a second time, in plain Python, to test the Spark project against.

Written from section 4 of the architecture ("the decision rules"), never from the project's SQL,
so that a misreading in one is not copied into the other. It favours clarity over speed: every
delivery is decided one after the other, all state is in ordinary dictionaries.

A number in a docstring, such as "rule 6", is that paragraph of the decision rules; R07 and the
like are rows of the rule table. Where the rules are silent the docstring says what was chosen.

Not modelled: resource monitors, resubmission of a rejected landing, retired triggers, and the
journal. Strings are compared as Python does it, by code point, which is also the order of their
UTF-8 bytes and so Spark's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

MAX_KEY_LENGTH = 96
RESERVED_IN_IDS = ("/recovery-", "/resubmission-")
RESUBMITTABLE = ("IN_DOUBT", "ERROR", "RETRIES_EXHAUSTED", "LOST")
KEY_FIELDS = {"MSG": ("uuid", "track_id", "event_id"), "JMS": ("uuid", "event_id")}
ELIGIBLE_ACKNOWLEDGEMENT_MODES = ("CLIENT_ACKNOWLEDGE", "TRANSACTED")

Answer = str | tuple[str, str]


# What lands, and what users configure -----------------------------------------------------------


@dataclass(frozen=True)
class Delivery:
    """A row of the landed table `deliveries`."""

    delivery_id: str | None
    received_at: datetime | None
    landed_at: datetime | None = None
    transport: str | None = "BROKER"
    document_type: str | None = None
    destination: str | None = None
    guaranteed: bool | None = True
    uuid: str | None = None
    track_id: str | None = None
    event_id: str | None = None
    redelivery_count: int | None = None
    errors_to: str | None = None
    document: str | None = None


@dataclass(frozen=True)
class Execution:
    """A row of the landed table `trigger_executions`."""

    execution_id: str
    delivery_id: str
    trigger_name: str
    service: str | None = None
    attempt: int = 1
    event: str = "STARTED"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    message: str | None = None
    recorded_at: datetime = field(kw_only=True)


@dataclass(frozen=True)
class Resubmission:
    """A row of the landed table `resubmissions`."""

    resubmission_id: str
    delivery_id: str
    trigger_name: str | None
    requested_at: datetime
    requested_by: str | None = None
    reason: str | None = None
    document: str | None = None
    force: bool | None = None


@dataclass(frozen=True)
class Command:
    """A row of the landed table `trigger_commands`."""

    command_id: str
    trigger_name: str
    command: str
    issued_at: datetime
    issued_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Trigger:
    """A row of the seed `triggers`, typed, with the documented defaults for blanks.

    `key_function` is `key` as a Python function.
    """

    trigger_name: str
    enabled: bool = True
    api: str = "MSG"
    acknowledgement_mode: str = "CLIENT_ACKNOWLEDGE"
    processing_mode: str = "serial"
    detect_duplicates: bool = False
    use_history: bool = False
    history_time_to_live_ms: int = 7_200_000
    resolver: str | None = None
    suspend_on_preprocessing_error: bool = False
    resource_monitor: str | None = None
    max_retry_attempts: int = 0
    retry_interval_ms: int = 10_000
    on_retry_failure: str = "throw"
    execution_timeout_ms: int = 3_600_000
    queue_capacity: int = 0
    start_from: datetime | None = None
    key: str | None = None
    key_function: Callable[[Delivery], str | None] | None = None

    @property
    def suspends_on_error(self) -> bool:
        """Rule 8."""
        return self.suspend_on_preprocessing_error or self.on_retry_failure == "suspend"


@dataclass(frozen=True)
class Condition:
    """A row of the seed `trigger_conditions`; `filter` is `filter_sql` as a Python function."""

    trigger_name: str
    position: int
    condition_name: str
    document_type: str
    filter: Callable[[Delivery], bool] | None = None
    filter_sql: str | None = None
    service: str | None = None


@dataclass(frozen=True)
class Transport:
    """A row of the seed `transports`."""

    transport: str
    api: str = "MSG"
    counts_deliveries: bool = True
    first_delivery_count: int | None = 0


# What a run says --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decision:
    """The columns of `document_status` that the decision rules settle."""

    delivery_id: str
    trigger_name: str
    status: str
    decided_by: str
    rule_id: str
    redelivery: str
    key_source: str | None
    document_key: str | None
    key_state: str
    history_state: str
    resolver_result: str | None
    message: str | None
    matched_delivery_id: str | None
    condition_name: str | None
    service: str | None


@dataclass(frozen=True)
class Waiting:
    """A delivery that is undecided after the run.

    Reasons: DISABLED, SUSPENDED, QUEUE_CAPACITY, UNFINISHED_DOCUMENT, BEHIND. A trigger that is
    both disabled and suspended gives DISABLED.
    """

    delivery_id: str
    trigger_name: str
    reason: str
    blocked_by_delivery_id: str | None = None


@dataclass(frozen=True)
class TriggerState:
    """Where a trigger stands after the run.

    `suspended_by` holds each cause that still suspends it: HISTORY (rule R14), RESOLVER (its
    transient error), RETRY_FAILURE, OPERATOR.
    """

    trigger_name: str
    enabled: bool
    suspended_by: frozenset[str]
    history_removed_until: datetime | None
    start_from: datetime | None

    @property
    def suspended(self) -> bool:
        """Whether the next run's deliveries would wait, if history came back before it."""
        return bool(self.suspended_by)


@dataclass
class RunResult:
    """All that one run says; the lists are sorted by trigger and delivery."""

    decisions: list[Decision] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    rejected: list[tuple[str | None, str]] = field(default_factory=list)
    unrouted: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    trigger_states: dict[str, TriggerState] = field(default_factory=dict)

    def decision(self, delivery_id: str, trigger_name: str | None = None) -> Decision:
        """The one decision on a delivery (in a trigger)."""
        found = [d for d in self.decisions if _is_of(d, delivery_id, trigger_name)]
        if len(found) != 1:
            raise LookupError(f"{len(found)} decisions on {delivery_id}, expected one")
        return found[0]

    def wait(self, delivery_id: str, trigger_name: str | None = None) -> Waiting:
        """The one wait of a delivery (in a trigger)."""
        found = [w for w in self.waiting if _is_of(w, delivery_id, trigger_name)]
        if len(found) != 1:
            raise LookupError(f"{delivery_id} waits {len(found)} times, expected once")
        return found[0]


def _is_of(row: Decision | Waiting, delivery_id: str, trigger_name: str | None) -> bool:
    return row.delivery_id == delivery_id and trigger_name in (None, row.trigger_name)


class TransientError(Exception):
    """What a resolver may raise instead of answering TRANSIENT_ERROR."""


# The rule table (rule 9) ------------------------------------------------------------------------


@dataclass(frozen=True)
class RuleInput:
    """The inputs of the rule table, without the resolver's answer."""

    eligible: bool
    detect_duplicates: bool
    use_history: bool
    has_resolver: bool
    redelivery: str
    key_state: str
    history_state: str
    suspends_on_error: bool


@dataclass(frozen=True)
class Rule:
    """The row of the rule table that applies."""

    rule_id: str
    status: str
    decided_by: str


# An answer's letter in the rule ids, the status it gives and what is said to have decided.
ANSWERS = {
    "NEW": ("a", "NEW", "RESOLVER"),
    "DUPLICATE": ("b", "DUPLICATE", "RESOLVER"),
    "IN_DOUBT": ("c", "IN_DOUBT", "RESOLVER"),
    "TRANSIENT_ERROR": ("e", "IN_DOUBT", "RESOLVER_ERROR"),
    "ERROR": ("f", "IN_DOUBT", "RESOLVER_ERROR"),
    "INVALID": ("g", "IN_DOUBT", "RESOLVER_ERROR"),
}


def choose_rule(given: RuleInput, ask: Callable[[], str]) -> Rule:
    """The rule that applies; `ask` is called only where the resolver's answer is needed."""
    if not given.eligible:
        return Rule("R01", "NOT_CHECKED", "NONE")
    if not given.detect_duplicates:
        return Rule("R02", "NOT_CHECKED", "NONE")
    if not given.use_history:
        return _rule_without_history(given, ask)
    if given.key_state != "USABLE":
        unanswered = Rule("R12", "IN_DOUBT", "ID")
        return _rule_by_answer("R13", given, ask) if given.has_resolver else unanswered
    return _rule_with_history(given, ask)


def _rule_without_history(given: RuleInput, ask: Callable[[], str]) -> Rule:
    if given.redelivery == "FIRST":
        return Rule("R03", "NEW", "COUNT")
    if given.has_resolver:
        return _rule_by_answer("R06", given, ask)
    if given.redelivery == "UNDEFINED":
        return Rule("R04", "NEW", "COUNT")
    return Rule("R05", "IN_DOUBT", "COUNT")


def _rule_with_history(given: RuleInput, ask: Callable[[], str]) -> Rule:
    if given.history_state == "NONE":
        return Rule("R07", "NEW", "HISTORY")
    if given.history_state == "COMPLETED":
        return Rule("R08", "DUPLICATE", "HISTORY")
    if given.history_state == "BOTH":
        return Rule("R09", "DUPLICATE", "HISTORY")
    if given.history_state == "PROCESSING":
        unanswered = Rule("R10", "IN_DOUBT", "HISTORY")
        return _rule_by_answer("R11", given, ask) if given.has_resolver else unanswered
    if given.suspends_on_error:
        return Rule("R14", "SUSPENDED", "HISTORY_ERROR")
    unanswered = Rule("R15", "IN_DOUBT", "HISTORY_ERROR")
    return _rule_by_answer("R16", given, ask) if given.has_resolver else unanswered


def _rule_by_answer(rules: str, given: RuleInput, ask: Callable[[], str]) -> Rule:
    answer = ask()
    if answer == "TRANSIENT_ERROR" and given.suspends_on_error:
        return Rule(f"{rules}d", "SUSPENDED", "RESOLVER_ERROR")
    if answer == "TRANSIENT_ERROR" and rules == "R16":
        return Rule("R16d", "IN_DOUBT", "RESOLVER_ERROR")
    letter, status, decided_by = ANSWERS[answer]
    return Rule(f"{rules}{letter}", status, decided_by)


# State kept from run to run ---------------------------------------------------------------------


@dataclass(frozen=True)
class HistoryEntry:
    """An entry of `document_history`."""

    trigger_name: str
    document_key: str
    processing_status: str
    started_at: datetime
    expires_at: datetime
    delivery_id: str


@dataclass(frozen=True)
class Arrival:
    """A delivery in the queue of one trigger.

    `delivery` is as the trigger sees it: for a recovery or resubmission its own id, time, count
    and document. `examined`: a run has taken it before; `waited`: an earlier run left it waiting;
    `awaited_key`: its key, where it has waited for a document of it. `of_resubmission`: it is a
    resubmission, or the recovery of one.
    """

    delivery: Delivery
    trigger_name: str
    landed_id: str
    recovery_number: int = 0
    resubmitted: bool = False
    of_resubmission: bool = False
    examined: bool = False
    waited: bool = False
    awaited_key: str | None = None

    def feed_time(self, happened_at: datetime) -> datetime:
        """When something happened to it here, by the clock of its feed."""
        assert self.delivery.landed_at is not None
        return self.received_at + max(happened_at - self.delivery.landed_at, timedelta(0))

    @property
    def delivery_id(self) -> str:
        """The id of its own, unique within the trigger."""
        assert self.delivery.delivery_id is not None
        return self.delivery.delivery_id

    @property
    def received_at(self) -> datetime:
        """Its event time."""
        assert self.delivery.received_at is not None
        return self.delivery.received_at

    @property
    def age(self) -> tuple[datetime, str]:
        """Sorts oldest first."""
        return self.received_at, self.delivery_id

    @property
    def on_top_of_capacity(self) -> bool:
        """Rule 1: what `queue_capacity` does not count."""
        return self.examined or self.resubmitted or self.recovery_number > 0


@dataclass
class OpenDocument:
    """An unfinished document: NEW or NOT_CHECKED, and its service has not ended.

    `time_to_live` is that of its history entries, None where it has none. `entry` is its processing
    entry once its service has begun, known here even when it has been removed from history.
    """

    arrival: Arrival
    service: str
    document_key: str | None
    time_to_live: timedelta | None = None
    entry: HistoryEntry | None = None
    executions: list[Execution] = field(default_factory=list)
    resumed_at: datetime | None = None

    @property
    def begun(self) -> bool:
        """Whether any execution row of it exists."""
        return bool(self.executions)

    def makes_copies_wait(self, processing_mode: str) -> bool:
        """Rule 6, of a document with entries: until its service has begun, or ended if serial."""
        return self.time_to_live is not None and (processing_mode == "serial" or not self.begun)

    @property
    def age(self) -> tuple[datetime, str]:
        """By which the latest is told: when its service began; later than all before the begin."""
        never = datetime.max.replace(tzinfo=self.arrival.received_at.tzinfo)
        return self.entry.started_at if self.entry else never, self.arrival.delivery_id

    def begin(self) -> HistoryEntry | None:
        """Rule 10: its processing entry, from the first executions that are known of it."""
        if self.time_to_live is None:
            return None
        assert self.document_key is not None
        times: list[datetime | None] = [e.started_at for e in self.executions]
        if not any(times):
            times = [e.ended_at for e in self.executions]
        if not any(times):
            times = [e.recorded_at for e in self.executions]
        started_at = self.arrival.feed_time(min(time for time in times if time))
        self.entry = HistoryEntry(
            trigger_name=self.arrival.trigger_name,
            document_key=self.document_key,
            processing_status="processing",
            started_at=started_at,
            expires_at=started_at + self.time_to_live,
            delivery_id=self.arrival.delivery_id,
        )
        return self.entry

    @property
    def attempts(self) -> int:
        """The latest attempt since the trigger was last resumed (rule 10)."""
        resumed_at = self.resumed_at
        counted = (e for e in self.executions if not resumed_at or e.recorded_at > resumed_at)
        return max((e.attempt for e in counted), default=0)

    def retry_failures(self, rows: Sequence[Execution], trigger: Trigger) -> list[Execution]:
        """Rule 10: transient errors after the last attempt, since the trigger was last resumed."""
        return [
            row
            for row in rows
            if row.event == "TRANSIENT_ERROR"
            and row.attempt > trigger.max_retry_attempts
            and (not self.resumed_at or row.recorded_at > self.resumed_at)
        ]

    def interrupted_at(self, execution_timeout_ms: int) -> datetime | None:
        """When STARTED, if it is the last word, counts as an interruption (rule 6)."""
        if not self.begun:
            return None
        last = max(self.executions, key=_execution_order)
        if last.event != "STARTED":
            return None
        since = max(last.recorded_at, last.started_at or last.recorded_at)
        return since + timedelta(milliseconds=execution_timeout_ms)


def _execution_order(execution: Execution) -> tuple[datetime, bool, str]:
    """By `recorded_at`; STARTED comes before its outcome of the same instant."""
    return execution.recorded_at, execution.event != "STARTED", execution.execution_id


@dataclass
class _TriggerRecord:
    """What the simulator remembers of a trigger."""

    settings: Trigger
    start_from: datetime | None
    suspended_by: set[str] = field(default_factory=set)
    resumed_at: datetime | None = None
    history_removed_until: datetime | None = None

    def snapshot(self) -> TriggerState:
        return TriggerState(
            trigger_name=self.settings.trigger_name,
            enabled=self.settings.enabled,
            suspended_by=frozenset(self.suspended_by),
            history_removed_until=self.history_removed_until,
            start_from=self.start_from,
        )


@dataclass(frozen=True)
class _Run:
    """What is the same for every decision of a run."""

    clock: datetime
    event_time_now: datetime | None
    history_unavailable: bool


@dataclass(frozen=True)
class _Facts:
    """What a delivery says of itself to a trigger (rules 1 to 4)."""

    trigger: Trigger
    eligible: bool
    redelivery: str
    key_source: str | None
    document_key: str | None
    key_state: str
    condition: Condition | None

    @property
    def uses_history(self) -> bool:
        """Whether it is looked up in history, and belongs to a chain (rule 7)."""
        detects = self.trigger.detect_duplicates and self.trigger.use_history
        return self.eligible and detects and self.key_state == "USABLE"


@dataclass(frozen=True)
class _Lookup:
    """What history says of a delivery (rules 5 and 6)."""

    state: str = "NONE"
    matched_delivery_id: str | None = None
    blocked_by_delivery_id: str | None = None
    suspends_on_error: bool = False


class Simulator:
    """Decides deliveries run by run, and remembers what the ledgers would.

    Deliveries are given in the order of their landing.
    """

    def __init__(
        self,
        triggers: Iterable[Trigger],
        conditions: Iterable[Condition],
        transports: Iterable[Transport],
        *,
        clock_skew_tolerance_ms: int = 0,
        allowed_lateness_ms: int = 86_400_000,
        removal_hold_days: int = 30,
        max_recoveries: int = 100,
        resolvers: dict[str, Callable[[Delivery], Answer]] | None = None,
    ) -> None:
        self.triggers = list(triggers)
        self.conditions = list(conditions)
        self.transports = {transport.transport: transport for transport in transports}
        self.clock_skew_tolerance = timedelta(milliseconds=clock_skew_tolerance_ms)
        self.allowed_lateness = timedelta(milliseconds=allowed_lateness_ms)
        self.removal_hold = timedelta(days=removal_hold_days)
        self.max_recoveries = max_recoveries
        self.resolvers = dict(resolvers or {})

        self.accepted: dict[str, Delivery] = {}
        self.statuses: dict[tuple[str, str], Decision] = {}
        self.arrivals: dict[tuple[str, str], Arrival] = {}
        self.history: dict[tuple[str, str], list[HistoryEntry]] = defaultdict(list)
        self.open_documents: dict[tuple[str, str], OpenDocument] = {}
        self.waiting: dict[tuple[str, str], Arrival] = {}
        self.outcomes: dict[tuple[str, str], str] = {}
        self.lines: dict[tuple[str, str], str] = {}
        self._number = 0
        self._decided_in: dict[tuple[str, str], int] = {}
        self._succeeded: set[tuple[str, str]] = set()
        self._succeeded_in: dict[tuple[str, str], int] = {}
        self.records: dict[str, _TriggerRecord] = {}
        self.early: dict[tuple[str, str], list[Execution]] = defaultdict(list)
        self._recoveries: dict[tuple[str, str], int] = defaultdict(int)
        self._resubmissions: dict[tuple[str, str], int] = defaultdict(int)
        self._interrupted: dict[tuple[str, str], HistoryEntry | None] = {}
        self._latest_received_at: datetime | None = None

    def run(
        self,
        clock: datetime,
        deliveries: Sequence[Delivery] = (),
        executions: Sequence[Execution] = (),
        resubmissions: Sequence[Resubmission] = (),
        commands: Sequence[Command] = (),
        history_unavailable: bool = False,
        triggers: Sequence[Trigger] | None = None,
        conditions: Sequence[Condition] | None = None,
    ) -> RunResult:
        """One run over what has landed since the previous one; its clock is `clock`.

        `triggers` and `conditions` replace the configuration from this run on.
        """
        result = RunResult()
        if conditions is not None:
            self.conditions = list(conditions)
        added = self._configure(self.triggers if triggers is None else list(triggers))
        earlier = list(self.accepted.values())
        landed = self._receive(deliveries, clock, result)
        run = _Run(clock, self._event_time_now(clock), history_unavailable)

        self._number += 1
        failures = self._read_executions(executions)
        self._change_suspensions(failures, commands, history_unavailable)
        queued = list(self.waiting.values())
        for recovery in self._interrupted.keys() & self.statuses.keys():
            del self._interrupted[recovery]
        queued += self._recover_interrupted(run, result)
        queued += self._accept_resubmissions(resubmissions, result)
        queued += self._route_landed(landed, result)
        queued += self._route_earlier(earlier, added)

        self.waiting = {}
        suspending = self._decide_all(self._take(queued, result), run, result)
        for trigger_name, cause in suspending:
            self.records[trigger_name].suspended_by.add(cause)
        self._read_early_executions()
        self._remove_expired_history(run)
        return self._finish(result)

    # Receive ------------------------------------------------------------------------------------

    def _configure(self, triggers: list[Trigger]) -> list[str]:
        """Take over the triggers' settings; return the names that no run has known before.

        One that the seed no longer has is disabled and keeps its last settings. `start_from` is
        as it was when the trigger became known.
        """
        self.triggers = triggers
        current = {trigger.trigger_name: trigger for trigger in triggers}
        added = [name for name in current if name not in self.records]
        for name, record in self.records.items():
            record.settings = current.get(name, replace(record.settings, enabled=False))
        for name in added:
            self.records[name] = _TriggerRecord(current[name], current[name].start_from)
        return added

    def _receive(
        self, deliveries: Sequence[Delivery], clock: datetime, result: RunResult
    ) -> list[Delivery]:
        """Accept or reject what has landed; a row without `landed_at` landed with the run's start.

        Chosen: a rejected row does not take its id, so a later good row of that id is accepted;
        the reason is the first that applies, in the order of `_rejection`.
        """
        accepted = []
        for row in deliveries:
            delivery = replace(row, landed_at=row.landed_at or clock)
            reason = self._rejection(delivery)
            if reason:
                result.rejected.append((delivery.delivery_id, reason))
                continue
            assert delivery.delivery_id is not None
            assert delivery.received_at is not None
            self.accepted[delivery.delivery_id] = delivery
            latest = self._latest_received_at or delivery.received_at
            self._latest_received_at = max(latest, delivery.received_at)
            accepted.append(delivery)
        return accepted

    def _rejection(self, delivery: Delivery) -> str | None:
        if not delivery.delivery_id:
            return "MISSING_DELIVERY_ID"
        if delivery.received_at is None:
            return "MISSING_RECEIVED_AT"
        if delivery.transport not in self.transports:
            return "UNKNOWN_TRANSPORT"
        if delivery.guaranteed is None:
            return "MISSING_GUARANTEED"
        if any(reserved in delivery.delivery_id for reserved in RESERVED_IN_IDS):
            return "RESERVED_DELIVERY_ID"
        first = self.accepted.get(delivery.delivery_id)
        if first is None:
            return None
        return "REPEATED" if _same_content(first, delivery) else "CONFLICTING"

    def _event_time_now(self, clock: datetime) -> datetime | None:
        """The word "event time's now" of section 1; none while nothing was accepted."""
        return min(self._latest_received_at, clock) if self._latest_received_at else None

    # Executions, suspensions --------------------------------------------------------------------

    def _read_executions(self, executions: Sequence[Execution]) -> list[Execution]:
        """End documents (rule 10); return the retry failures that suspend their trigger.

        Of documents that are open no more a SUCCESS is heard; rows of documents that nobody has
        decided count once they are. Chosen: a document that the same rows end does not suspend.
        """
        rows_by_document: dict[tuple[str, str], list[Execution]] = defaultdict(list)
        for execution in executions:
            identity = (execution.delivery_id, execution.trigger_name)
            if identity in self.open_documents:
                rows_by_document[identity].append(execution)
            elif identity not in self.statuses:
                self.early[identity].append(execution)
            elif execution.event == "SUCCESS":
                self._hear_success(identity)

        failures = []
        for identity, rows in rows_by_document.items():
            if not self._tell(identity, rows):
                document = self.open_documents[identity]
                settings = self.records[identity[1]].settings
                failures += document.retry_failures(rows, settings)
        return failures

    def _tell(self, identity: tuple[str, str], rows: list[Execution]) -> bool:
        """Rule 10: begin a document by its first rows and end it by the rows that end it.

        Returns whether it has ended. Chosen: of several ends the latest is the service's end.
        """
        document = self.open_documents[identity]
        settings = self.records[identity[1]].settings
        has_begun = document.begun
        document.executions += rows
        if not has_begun:
            entry = document.begin()
            if entry:
                self._add_to_history(entry)
        beyond = document.retry_failures(rows, settings)
        ending = beyond if settings.on_retry_failure == "throw" else []
        ending += [row for row in rows if row.event in ("SUCCESS", "ERROR")]
        ends = [row.ended_at or row.recorded_at for row in ending]
        if ends:
            self.outcomes[identity] = next(
                (event for event in ("SUCCESS", "ERROR") if any(r.event == event for r in rows)),
                "RETRIES_EXHAUSTED",
            )
            if self.outcomes[identity] == "SUCCESS":
                self._hear_success(identity)
            self._complete(identity, max(ends))
        return bool(ends)

    def _hear_success(self, identity: tuple[str, str]) -> None:
        """Rule 11: it settles earlier doubts about the key; a repeated report is no news."""
        key = self.statuses[identity].document_key
        if key and identity not in self._succeeded:
            self._succeeded.add(identity)
            self._succeeded_in[identity[1], key] = self._number

    def _read_early_executions(self) -> None:
        """Rows that landed before their document was decided. Chosen: they count from the end of
        the run that decides it, so that the copies behind it wait in that run all the same.
        """
        for identity in [identity for identity in self.early if identity in self.statuses]:
            rows = self.early.pop(identity)
            if identity in self.open_documents and not self._tell(identity, rows):
                record = self.records[identity[1]]
                if self.open_documents[identity].retry_failures(rows, record.settings):
                    record.suspended_by.add("RETRY_FAILURE")

    def _complete(self, identity: tuple[str, str], ended_at: datetime) -> None:
        """Rule 10: the entry of a service that outlasts the time to live expires at its end.

        Chosen: and not before the copies that have waited for the document, however late the run
        hears of the end.
        """
        document = self.open_documents.pop(identity)
        if document.entry is None:
            return
        key = document.entry.trigger_name, document.entry.document_key
        waited = [
            arrival.received_at + timedelta(microseconds=1)
            for arrival in self.waiting.values()
            if (arrival.trigger_name, arrival.awaited_key) == key
        ]
        ends = [document.entry.expires_at, document.arrival.feed_time(ended_at), *waited]
        self._add_to_history(
            replace(document.entry, processing_status="completed", expires_at=max(ends))
        )

    def _change_suspensions(
        self,
        failures: Sequence[Execution],
        commands: Sequence[Command],
        history_unavailable: bool,
    ) -> None:
        """Rule 8, and the order of commands and retry failures, which is that of their times.

        RESUME lifts each cause but HISTORY, which the first run that may read history lifts.
        At the same instant a retry failure comes first, so that the operator has the last word.
        """
        if not history_unavailable:
            for record in self.records.values():
                record.suspended_by.discard("HISTORY")
        events = [(f.recorded_at, 0, f.execution_id, f.trigger_name, "FAIL") for f in failures]
        events += [(c.issued_at, 1, c.command_id, c.trigger_name, c.command) for c in commands]
        for when, _, _, trigger_name, event in sorted(events):
            if trigger_name not in self.records:
                continue
            suspended_by = self.records[trigger_name].suspended_by
            if event == "FAIL":
                suspended_by.add("RETRY_FAILURE")
            elif event == "SUSPEND":
                suspended_by.add("OPERATOR")
            elif event == "RESUME":
                suspended_by &= {"HISTORY"}
                self._count_attempts_anew(trigger_name, when)

    def _count_attempts_anew(self, trigger_name: str, resumed_at: datetime) -> None:
        self.records[trigger_name].resumed_at = resumed_at
        for document in self.open_documents.values():
            if document.arrival.trigger_name == trigger_name:
                document.resumed_at = resumed_at

    # What comes into the queues -----------------------------------------------------------------

    def _recover_interrupted(self, run: _Run, result: RunResult) -> list[Arrival]:
        """Rule 6: interrupted documents come back, or are LOST if they are volatile.

        Chosen: also in suspended and disabled triggers, where the recovery then waits.
        """
        recoveries = []
        for identity, document in list(self.open_documents.items()):
            settings = self.records[document.arrival.trigger_name].settings
            interrupted_at = document.interrupted_at(settings.execution_timeout_ms)
            if interrupted_at is None or interrupted_at > run.clock:
                continue
            del self.open_documents[identity]
            guaranteed = document.arrival.delivery.guaranteed
            self.outcomes[identity] = "INTERRUPTED" if guaranteed else "LOST"
            if guaranteed:
                recovery = self._recovery_of(document.arrival)
                self._interrupted[recovery.delivery_id, recovery.trigger_name] = document.entry
                recoveries.append(recovery)
            else:
                result.lost.append(identity)
        return recoveries

    def _recovery_of(self, arrival: Arrival) -> Arrival:
        """Chosen: time, count and document are those of the copy that was interrupted."""
        line = (arrival.landed_id, arrival.trigger_name)
        self._recoveries[line] += 1
        number = self._recoveries[line]
        count = arrival.delivery.redelivery_count
        delivery = replace(
            arrival.delivery,
            delivery_id=f"{arrival.landed_id}/recovery-{number}",
            redelivery_count=count if count is None or count < 0 else count + 1,
        )
        return Arrival(
            delivery,
            arrival.trigger_name,
            arrival.landed_id,
            recovery_number=number,
            of_resubmission=arrival.of_resubmission,
        )

    def _accept_resubmissions(
        self, resubmissions: Sequence[Resubmission], result: RunResult
    ) -> list[Arrival]:
        """Rule 11, in (requested_at, resubmission_id) order.

        A landed delivery, its recoveries and its resubmissions are a line; the one that was decided
        last, or still waits, tells whether the line can go on.
        """
        arrivals = []
        accepted: set[tuple[str, str]] = set()
        for request in sorted(resubmissions, key=lambda r: (r.requested_at, r.resubmission_id)):
            identity = (request.delivery_id, request.trigger_name or "")
            reason = self._refusal(identity, bool(request.force))
            line = _line_of(identity)
            if reason is None and line in accepted:
                reason = "RESUBMITTED"
            if reason:
                result.refused.append((request.resubmission_id, reason))
            else:
                accepted.add(line)
                arrivals.append(self._resubmission_of(self.arrivals[identity], request))
        return arrivals

    def _refusal(self, identity: tuple[str, str], force: bool) -> str | None:
        decision = self.statuses.get(identity)
        if decision is None:
            return "NO_DECISION"
        outcome = self._outcome(identity)
        if outcome not in RESUBMITTABLE:
            return outcome
        line = _line_of(identity)
        comes_again = any(
            _line_of(waiting) == line and "/" in waiting[0][len(line[0]) :]
            for waiting in self.waiting
        )
        if comes_again or self._outcome((self.lines[line], identity[1])) not in RESUBMITTABLE:
            return "RESUBMITTED"
        if decision.status == "IN_DOUBT" and decision.document_key and not force:
            succeeded = self._succeeded_in.get((identity[1], decision.document_key), 0)
            if succeeded > self._decided_in[identity]:
                return "SETTLED"
        return None

    def _outcome(self, identity: tuple[str, str]) -> str:
        decision = self.statuses[identity]
        if decision.status in ("IN_DOUBT", "DUPLICATE"):
            return decision.status
        if identity in self.open_documents:
            return "UNFINISHED"
        return self.outcomes.get(identity, "SUCCESS")

    def _resubmission_of(self, arrival: Arrival, request: Resubmission) -> Arrival:
        line = (arrival.landed_id, arrival.trigger_name)
        self._resubmissions[line] += 1
        document = arrival.delivery.document if request.document is None else request.document
        delivery = replace(
            arrival.delivery,
            delivery_id=f"{arrival.landed_id}/resubmission-{self._resubmissions[line]}",
            received_at=request.requested_at,
            landed_at=request.requested_at,
            document=document,
        )
        return Arrival(
            delivery,
            arrival.trigger_name,
            arrival.landed_id,
            resubmitted=True,
            of_resubmission=True,
        )

    def _route_landed(self, landed: list[Delivery], result: RunResult) -> list[Arrival]:
        """Rule 1. Chosen: a delivery that `start_from` keeps from all triggers is unrouted."""
        arrivals = []
        for delivery in landed:
            names = [name for name in self.records if self._takes(name, delivery)]
            arrivals += [_arrival(delivery, name) for name in names]
            if not names:
                assert delivery.delivery_id is not None
                result.unrouted.append(delivery.delivery_id)
        return arrivals

    def _route_earlier(self, earlier: list[Delivery], added: list[str]) -> list[Arrival]:
        """What an added trigger with `start_from` takes of earlier runs' deliveries (rule 1)."""
        dated = [name for name in added if self.records[name].start_from is not None]
        return [
            _arrival(delivery, name)
            for name in dated
            for delivery in earlier
            if self._takes(name, delivery)
        ]

    def _takes(self, trigger_name: str, delivery: Delivery) -> bool:
        record = self.records[trigger_name]
        assert delivery.received_at is not None
        if record.start_from is not None and delivery.received_at < record.start_from:
            return False
        if delivery.destination is not None:
            return delivery.destination == trigger_name
        # what the seed no longer has subscribes to nothing
        if trigger_name not in {trigger.trigger_name for trigger in self.triggers}:
            return False
        if record.settings.api != self._api(delivery):
            return False
        return any(
            condition.trigger_name == trigger_name
            and condition.document_type == delivery.document_type
            for condition in self.conditions
        )

    def _api(self, delivery: Delivery) -> str:
        assert delivery.transport is not None
        return self.transports[delivery.transport].api

    def _take(self, queued: list[Arrival], result: RunResult) -> list[Arrival]:
        """Rule 1: leave waiting what the triggers do not take, return what they do."""
        taken = []
        by_trigger: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in queued:
            by_trigger[arrival.trigger_name].append(arrival)
        for trigger_name, arrivals in by_trigger.items():
            record = self.records[trigger_name]
            reason = _reason_to_take_nothing(record)
            kept_back = arrivals if reason else _beyond_capacity(arrivals, record.settings)
            for arrival in kept_back:
                self._leave_waiting(arrival, reason or "QUEUE_CAPACITY", None, result)
            held = {arrival.delivery_id for arrival in kept_back}
            taken += [
                replace(arrival, examined=True)
                for arrival in arrivals
                if arrival.delivery_id not in held
            ]
        return taken

    def _leave_waiting(
        self,
        arrival: Arrival,
        reason: str,
        blocked_by: str | None,
        result: RunResult,
        awaited_key: str | None = None,
    ) -> None:
        """awaited_key: its key, if it waits for a document of it."""
        identity = (arrival.delivery_id, arrival.trigger_name)
        awaited_key = awaited_key or arrival.awaited_key
        self.waiting[identity] = replace(arrival, waited=True, awaited_key=awaited_key)
        result.waiting.append(Waiting(*identity, reason, blocked_by))

    # Decide -------------------------------------------------------------------------------------

    def _decide_all(
        self, taken: list[Arrival], run: _Run, result: RunResult
    ) -> list[tuple[str, str]]:
        """Decide every chain; return the suspensions that begin with the next run.

        Deliveries that stand alone come behind the chains, oldest first: whether a serial trigger's
        resolver may be asked about one depends on what becomes of earlier ones (rule 6).
        """
        suspending = []
        chains = self._chains(taken)
        for chain in sorted(chains, key=lambda c: (not self._facts(c[0]).uses_history, c[0].age)):
            suspending += self._decide_chain(chain, run, result)
        return suspending

    def _chains(self, taken: list[Arrival]) -> list[list[Arrival]]:
        """Rule 7: the deliveries of one key in order, resubmissions first; others stand alone."""
        chains: dict[tuple[str, str, str], list[Arrival]] = defaultdict(list)
        for arrival in taken:
            facts = self._facts(arrival)
            if facts.uses_history and facts.document_key is not None:
                chains[arrival.trigger_name, "key", facts.document_key].append(arrival)
            else:
                chains[arrival.trigger_name, "alone", arrival.delivery_id].append(arrival)
        return [
            sorted(chain, key=lambda a: (not a.resubmitted, a.age)) for chain in chains.values()
        ]

    def _decide_chain(
        self, chain: list[Arrival], run: _Run, result: RunResult
    ) -> list[tuple[str, str]]:
        """Decide until the first that cannot be decided; those after it wait behind it."""
        for position, arrival in enumerate(chain):
            facts = self._facts(arrival)
            lookup = self._look_up(arrival, facts, run)
            blocked_by = lookup.blocked_by_delivery_id
            if not blocked_by and self._needs_answer(arrival, facts, lookup):
                blocked_by = self._unfinished_before(arrival, facts)
            if blocked_by:
                reason, suspending = "UNFINISHED_DOCUMENT", []
            else:
                decision = self._decide(arrival, facts, lookup)
                if decision.status != "SUSPENDED":
                    self._record(arrival, facts, decision, run)
                    result.decisions.append(decision)
                    continue
                cause = "HISTORY" if decision.rule_id == "R14" else "RESOLVER"
                reason, suspending = "SUSPENDED", [(arrival.trigger_name, cause)]
            awaited_key = facts.document_key if lookup.blocked_by_delivery_id else None
            self._leave_waiting(arrival, reason, blocked_by, result, awaited_key)
            for behind in chain[position + 1 :]:
                awaits = self._look_up(behind, self._facts(behind), run).blocked_by_delivery_id
                awaited_key = facts.document_key if awaits else None
                self._leave_waiting(behind, "BEHIND", arrival.delivery_id, result, awaited_key)
            return suspending
        return []

    def _needs_answer(self, arrival: Arrival, facts: _Facts, lookup: _Lookup) -> bool:
        asked = []

        def ask() -> str:
            asked.append(True)
            return "NEW"

        if arrival.resubmitted or self._is_beyond_max_recoveries(arrival):
            return False
        choose_rule(_rule_input(facts, lookup), ask)
        return bool(asked)

    def _unfinished_before(self, arrival: Arrival, facts: _Facts) -> str | None:
        """Rule 6: the unfinished document that a serial trigger's resolver must not overtake.

        Chosen: the earliest of them is named; a resubmission holds back its own key only.
        """
        if facts.trigger.processing_mode != "serial" or facts.uses_history:
            return None
        before = [
            document.arrival
            for document in self.open_documents.values()
            if document.arrival.trigger_name == arrival.trigger_name
            and document.arrival.age < arrival.age
            and (
                document.document_key == facts.document_key
                if facts.key_state == "USABLE"
                else not document.arrival.resubmitted
            )
        ]
        return min(before, key=lambda a: a.age).delivery_id if before else None

    def _decide(self, arrival: Arrival, facts: _Facts, lookup: _Lookup) -> Decision:
        answers: list[tuple[str, str | None]] = []

        def ask() -> str:
            answers.append(self._ask_resolver(arrival, facts.trigger))
            return answers[0][0]

        if self._is_beyond_max_recoveries(arrival):
            rule = Rule("MAX_RECOVERIES", "IN_DOUBT", "MAX_RECOVERIES")
        elif arrival.resubmitted:
            rule = Rule("OPERATOR", "NEW", "OPERATOR")
        else:
            rule = choose_rule(_rule_input(facts, lookup), ask)
        resolver_result, message = answers[0] if answers else (None, None)
        return Decision(
            delivery_id=arrival.delivery_id,
            trigger_name=arrival.trigger_name,
            status=rule.status,
            decided_by=rule.decided_by,
            rule_id=rule.rule_id,
            redelivery=facts.redelivery,
            key_source=facts.key_source,
            document_key=facts.document_key,
            key_state=facts.key_state,
            history_state=lookup.state,
            resolver_result=resolver_result,
            message=message,
            matched_delivery_id=lookup.matched_delivery_id,
            condition_name=facts.condition.condition_name if facts.condition else None,
            service=facts.condition.service if facts.condition else None,
        )

    def _is_beyond_max_recoveries(self, arrival: Arrival) -> bool:
        return arrival.recovery_number > self.max_recoveries

    def _ask_resolver(self, arrival: Arrival, trigger: Trigger) -> tuple[str, str | None]:
        """The resolver's answer and message; what it raises is an answer too (rule 8)."""
        if trigger.resolver not in self.resolvers:
            raise ValueError(f"trigger {trigger.trigger_name}: no resolver {trigger.resolver!r}")
        try:
            answer = self.resolvers[trigger.resolver](arrival.delivery)
        except Exception as error:
            kind = "TRANSIENT_ERROR" if isinstance(error, TransientError) else "ERROR"
            return kind, f"{type(error).__name__}: {error}"
        status, message = answer if isinstance(answer, tuple) else (answer, None)
        if status not in ("NEW", "DUPLICATE", "IN_DOUBT"):
            return "INVALID", f"answered {answer!r}, not one of NEW, DUPLICATE, IN_DOUBT"
        return status, message

    def _facts(self, arrival: Arrival) -> _Facts:
        """Rules 1 to 4, with the settings and conditions of this run."""
        delivery = arrival.delivery
        trigger = self.records[arrival.trigger_name].settings
        api = self._api(delivery)
        # a recovery or a resubmission keeps the key of its delivery, also with another document
        decided = self.statuses.get((arrival.landed_id, arrival.trigger_name))
        if decided:
            source, key, state = decided.key_source, decided.document_key, decided.key_state
        else:
            source, key, state = document_key_of(delivery, api, trigger.key_function)
        return _Facts(
            trigger=trigger,
            eligible=is_eligible(delivery, trigger, api),
            redelivery=redelivery_of(delivery, self.transports[str(delivery.transport)]),
            key_source=source,
            document_key=key,
            key_state=state,
            condition=self._condition(delivery, trigger),
        )

    def _condition(self, delivery: Delivery, trigger: Trigger) -> Condition | None:
        """Rule 1: the first by position whose filter is true."""
        candidates = (c for c in self.conditions if c.trigger_name == trigger.trigger_name)
        for condition in sorted(candidates, key=lambda c: (c.position, c.condition_name)):
            if condition.document_type != delivery.document_type:
                continue
            if condition.filter is None or condition.filter(delivery) is True:
                return condition
        return None

    # History ------------------------------------------------------------------------------------

    def _look_up(self, arrival: Arrival, facts: _Facts, run: _Run) -> _Lookup:
        """Rules 5 and 6, in this order: the operator's word, a live completed entry, waiting,
        removal. UNAVAILABLE names no match, since history has not answered.

        Neither a resubmission nor a recovery beyond the maximum waits for an unfinished document:
        what history knows stands beside a decision that does not rest on it.

        Chosen: to the recovery of a resubmission nothing is completed. What was, is what the
        resubmission was for, and a DUPLICATE would be neither processed nor waiting (rule 11). To
        a delivery that has waited for a document, this one is known as begun whenever it is
        decided: copies that come while it is unfinished are never NEW (rule 10).
        """
        suspends = facts.trigger.suspends_on_error
        if not facts.uses_history:
            return _Lookup(suspends_on_error=suspends)
        if run.history_unavailable:
            return _Lookup("UNAVAILABLE", suspends_on_error=suspends)

        entries = self._live_entries(arrival, facts)
        statuses = {entry.processing_status for entry in entries}
        if arrival.of_resubmission and not arrival.resubmitted:
            statuses.discard("completed")
        if not statuses and arrival.awaited_key == facts.document_key:
            statuses.add("processing")
        waits_for_none = arrival.resubmitted or self._is_beyond_max_recoveries(arrival)
        if "completed" not in statuses and not waits_for_none:
            unfinished = [
                document
                for document in self.open_documents.values()
                if document.makes_copies_wait(facts.trigger.processing_mode)
                and (document.arrival.trigger_name, document.document_key)
                == (arrival.trigger_name, facts.document_key)
            ]
            if unfinished:
                latest = max(unfinished, key=lambda document: document.age)
                return _Lookup(blocked_by_delivery_id=latest.arrival.delivery_id)
        if self._is_removed(arrival):
            return _Lookup("UNAVAILABLE", suspends_on_error=False)
        return _Lookup(_state_of(statuses), _latest(entries), suspends_on_error=suspends)

    def _live_entries(self, arrival: Arrival, facts: _Facts) -> list[HistoryEntry]:
        """Rule 5. An unfinished document's entry is live, and known after its removal too.

        Chosen: so is that of an interrupted document, until the run that decides its recovery is
        over (rule 6).
        """
        assert facts.document_key is not None
        key = (arrival.trigger_name, facts.document_key)
        of_documents = [document.entry for document in self.open_documents.values()]
        of_documents += self._interrupted.values()
        open_entries = [
            entry
            for entry in of_documents
            if entry and (entry.trigger_name, entry.document_key) == key
        ]
        return open_entries + [
            entry
            for entry in self.history.get(key, [])
            if entry not in open_entries and self._is_live(entry, arrival)
        ]

    def _is_live(self, entry: HistoryEntry, arrival: Arrival) -> bool:
        not_expired = entry.expires_at + self.clock_skew_tolerance > arrival.received_at
        return not_expired or entry.started_at > arrival.received_at

    def _is_removed(self, arrival: Arrival) -> bool:
        removed_until = self.records[arrival.trigger_name].history_removed_until
        if removed_until is None:
            return False
        return arrival.received_at < removed_until + self.clock_skew_tolerance

    def _add_to_history(self, entry: HistoryEntry) -> None:
        self.history[entry.trigger_name, entry.document_key].append(entry)

    def _record(self, arrival: Arrival, facts: _Facts, decision: Decision, run: _Run) -> None:
        """Rules 7 and 9: status, history entries and open document of a decision."""
        identity = (arrival.delivery_id, arrival.trigger_name)
        self.statuses[identity] = decision
        self.arrivals[identity] = arrival
        self._decided_in[identity] = self._number
        self.lines[arrival.landed_id, arrival.trigger_name] = arrival.delivery_id
        has_entries = (
            decision.status == "NEW" and facts.uses_history and facts.condition is not None
        )
        if has_entries and decision.service is None:
            entry = self._processing_entry(arrival, facts, run)
            self._add_to_history(entry)
            self._add_to_history(replace(entry, processing_status="completed"))
        if decision.status in ("NEW", "NOT_CHECKED") and decision.service is not None:
            time_to_live = timedelta(milliseconds=facts.trigger.history_time_to_live_ms)
            self.open_documents[identity] = OpenDocument(
                arrival,
                decision.service,
                facts.document_key,
                time_to_live if has_entries else None,
                resumed_at=self.records[arrival.trigger_name].resumed_at,
            )

    def _processing_entry(self, arrival: Arrival, facts: _Facts, run: _Run) -> HistoryEntry:
        """Rule 7: without a service it starts at r, at event time's now where it had waited."""
        started_at = arrival.received_at
        if arrival.waited and run.event_time_now:
            started_at = max(started_at, run.event_time_now)
        time_to_live = timedelta(milliseconds=facts.trigger.history_time_to_live_ms)
        assert facts.document_key is not None
        return HistoryEntry(
            trigger_name=arrival.trigger_name,
            document_key=facts.document_key,
            processing_status="processing",
            started_at=started_at,
            expires_at=started_at + time_to_live,
            delivery_id=arrival.delivery_id,
        )

    def _removal_bound(self, run: _Run) -> datetime | None:
        """Rule 12. Chosen: the undecided hold the bound back from where it would be without them
        by `removal_hold_days` at most; recoveries and resubmissions count among them.
        """
        if run.event_time_now is None:
            return None
        bound = run.event_time_now - self.clock_skew_tolerance - self.allowed_lateness
        if self.waiting:
            oldest = min(arrival.received_at for arrival in self.waiting.values())
            held = max(oldest - self.clock_skew_tolerance, bound - self.removal_hold)
            bound = min(bound, held)
        return bound.replace(minute=0, second=0, microsecond=0)

    def _remove_expired_history(self, run: _Run) -> None:
        """Rule 12. Chosen: what expires at the bound counts as removed, and goes a partition later,
        since partitions are removed whole.
        """
        bound = self._removal_bound(run)
        if bound is None:
            return
        for key, entries in list(self.history.items()):
            removed = [entry for entry in entries if entry.expires_at <= bound]
            if not removed:
                continue
            self.history[key] = [entry for entry in entries if entry.expires_at >= bound]
            record = self.records[key[0]]
            latest = max(entry.expires_at for entry in removed)
            record.history_removed_until = max(latest, record.history_removed_until or latest)

    def _finish(self, result: RunResult) -> RunResult:
        result.decisions.sort(key=lambda d: (d.trigger_name, d.delivery_id))
        result.waiting.sort(key=lambda w: (w.trigger_name, w.delivery_id))
        result.unrouted.sort()
        names = sorted(self.records)
        result.trigger_states = {name: self.records[name].snapshot() for name in names}
        return result


# Small rules ------------------------------------------------------------------------------------


def is_eligible(delivery: Delivery, trigger: Trigger, api: str) -> bool:
    """Rule 2; `api` is the transport's."""
    acknowledged = trigger.acknowledgement_mode in ELIGIBLE_ACKNOWLEDGEMENT_MODES
    return bool(delivery.guaranteed) and (api != "JMS" or acknowledged)


def redelivery_of(delivery: Delivery, transport: Transport) -> str:
    """Rule 3."""
    count = delivery.redelivery_count
    if count is None or count < 0 or not transport.counts_deliveries:
        return "UNDEFINED"
    return "FIRST" if count <= (transport.first_delivery_count or 0) else "REDELIVERED"


def document_key_of(
    delivery: Delivery, api: str, expression: Callable[[Delivery], str | None] | None = None
) -> tuple[str | None, str | None, str]:
    """Rule 4: key source, key and key state; `api` is the transport's.

    Chosen: without a key there is no source either.
    """
    if expression:
        given = [("EXPRESSION", expression(delivery))]
    else:
        given = [(name.upper(), getattr(delivery, name)) for name in KEY_FIELDS[api]]
    for source, value in given:
        if value:
            return source, value, "USABLE" if len(value) <= MAX_KEY_LENGTH else "TOO_LONG"
    return None, None, "MISSING"


def _line_of(identity: tuple[str, str]) -> tuple[str, str]:
    """The landed delivery that a recovery or resubmission comes from, and its trigger."""
    return re.sub(r"/(recovery|resubmission)-[0-9]+$", "", identity[0]), identity[1]


def _arrival(delivery: Delivery, trigger_name: str) -> Arrival:
    assert delivery.delivery_id is not None
    return Arrival(delivery, trigger_name, delivery.delivery_id)


def _same_content(first: Delivery, other: Delivery) -> bool:
    """Whether all columns but the one that landing sets are equal."""
    names = [column.name for column in fields(Delivery) if column.name != "landed_at"]
    return all(getattr(first, name) == getattr(other, name) for name in names)


def _reason_to_take_nothing(record: _TriggerRecord) -> str | None:
    if not record.settings.enabled:
        return "DISABLED"
    return "SUSPENDED" if record.suspended_by else None


def _beyond_capacity(arrivals: list[Arrival], trigger: Trigger) -> list[Arrival]:
    if trigger.queue_capacity == 0:
        return []
    counted = sorted((a for a in arrivals if not a.on_top_of_capacity), key=lambda a: a.age)
    return counted[trigger.queue_capacity :]


def _rule_input(facts: _Facts, lookup: _Lookup) -> RuleInput:
    return RuleInput(
        eligible=facts.eligible,
        detect_duplicates=facts.trigger.detect_duplicates,
        use_history=facts.trigger.use_history,
        has_resolver=facts.trigger.resolver is not None,
        redelivery=facts.redelivery,
        key_state=facts.key_state,
        history_state=lookup.state,
        suspends_on_error=lookup.suspends_on_error,
    )


def _state_of(statuses: set[str]) -> str:
    if statuses == {"processing", "completed"}:
        return "BOTH"
    return statuses.pop().upper() if statuses else "NONE"


def _latest(entries: list[HistoryEntry]) -> str | None:
    """The delivery of the entry with the greatest start; of equals, the greatest id."""
    latest = max(entries, key=lambda e: (e.started_at, e.delivery_id), default=None)
    return latest.delivery_id if latest else None
