"""Asks resolvers in a Spark worker: in order, within a time limit, whatever they answer.

Chains come as arrays, one per key. A call takes the k-th candidate of every chain in round k, so
that a table resolver gets few large tables and each chain is still asked in order.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from python_udfs._hooks import Delivery, Hook, TransientError, close_resources, registry

if TYPE_CHECKING:
    import pyarrow as pa

STATUSES = ("NEW", "DUPLICATE", "IN_DOUBT")
LONGEST_MESSAGE = 1000
# after so many calls in a row that overran their limit the resolver is taken to be down
LIMITS_IN_A_ROW = 3
IDLE_SECONDS = 5.0
ATTRIBUTES = tuple(attribute.name for attribute in fields(Delivery))

Answer = tuple[str, "str | None"]
NOT_ASKED: Answer = ("NOT_ASKED", None)


@dataclass
class Candidate:
    """A delivery to ask about, and what its answer means for those behind it in its chain."""

    delivery_id: str
    delivery: Delivery
    ends_on_new: bool
    ends_on_transient_error: bool

    def ends_chain(self, answer: Answer) -> bool:
        """Whether those behind it are not asked before the chain is looked at again."""
        result, _ = answer
        return (
            result == "NOT_ASKED"
            or (result == "NEW" and self.ends_on_new)
            or (result == "TRANSIENT_ERROR" and self.ends_on_transient_error)
        )


# ---- what an answer means


def judge(answer: Any) -> Answer:
    """Result and message of what a resolver has returned; INVALID where it is no answer."""
    status, message = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not isinstance(status, str) or status not in STATUSES:
        return "INVALID", cut(f"answered {answer!r}, not one of {', '.join(STATUSES)}")
    if message is None:
        return status, None
    if not isinstance(message, str):
        return "INVALID", cut(f"answered {status} with the message {message!r}, which is no text")
    if len(message) > LONGEST_MESSAGE:
        return "INVALID", cut(
            f"answered {status} with a message of {len(message)} characters, at most "
            f"{LONGEST_MESSAGE} are allowed: {message}"
        )
    return status, message


def failed(error: BaseException) -> Answer:
    """Result and message of what a resolver has raised: type and text."""
    text = str(error)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ("TRANSIENT_ERROR" if isinstance(error, TransientError) else "ERROR"), cut(said)


def cut(message: str) -> str:
    return message[:LONGEST_MESSAGE]


# ---- calls, which may hang


@dataclass
class Calls:
    """Some calls of a resolver, one after the other; shared by the thread that makes them and the
    one that watches it."""

    make: Callable[[int], list[Answer]]
    total: int
    answers: list[list[Answer]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    given_up: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Make the calls, unless the watching thread has given up on one meanwhile."""
        for number in range(self.total):
            with self.lock:
                if self.given_up:
                    return
                self.started = time.monotonic()
            answers = self.make(number)
            with self.lock:
                if self.given_up:
                    return
                self.answers.append(answers)
        self.ended.set()

    def wait(self, limit: float) -> bool:
        """Wait for their end; False where one takes longer than its limit in seconds."""
        while True:
            if self.ended.wait(max(self.started + limit - time.monotonic(), 0.001)):
                return True
            with self.lock:
                if len(self.answers) < self.total and time.monotonic() - self.started >= limit:
                    self.given_up = True
                    return False


class Caller:
    """The thread that calls resolvers; left behind with a call that hangs, and made anew.

    It closes what the resolvers have made in it once it has had nothing to do for a while: Spark
    ends its workers without what Python runs at exit.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Calls] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="resolver", daemon=True).start()

    def start(self, calls: Calls) -> None:
        self._work.put(calls)

    def _run(self) -> None:
        while True:
            try:
                calls = self._work.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                close_resources()
                continue
            calls.run()
            if calls.given_up:
                close_resources()
                return


_caller: Caller | None = None


class Asking:
    """Asks one resolver about the chains of a Spark task."""

    def __init__(self, hook: Hook, limit: float, trace: Trace) -> None:
        self._hook = hook
        self._limit = limit
        self._trace = trace
        self._limits_in_a_row = 0

    def ask(self, chains: Sequence[Sequence[Candidate]]) -> list[list[Answer]]:
        """The answers for the candidates of each chain, up to one that ends it."""
        answers: list[list[Answer]] = [[] for _ in chains]
        open_chains = [number for number, chain in enumerate(chains) if chain]
        while open_chains:
            place = len(answers[open_chains[0]])
            candidates = [chains[number][place] for number in open_chains]
            for number, answer in zip(open_chains, self._round(candidates), strict=True):
                answers[number].append(answer)
            open_chains = [
                number
                for number in open_chains
                if place + 1 < len(chains[number])
                and not chains[number][place].ends_chain(answers[number][-1])
            ]
        return answers

    def _round(self, candidates: list[Candidate]) -> list[Answer]:
        if self._hook.table is not None:
            return self._make_calls(1, lambda _: self._call_table(candidates), len(candidates))
        return self._make_calls(len(candidates), lambda n: [self._call(candidates[n])], 1)

    def _make_calls(
        self, total: int, make: Callable[[int], list[Answer]], answers_per_call: int
    ) -> list[Answer]:
        """Make calls until all have answered, overrun their limit, or the resolver is down."""
        global _caller
        made: list[list[Answer]] = []
        while len(made) < total:
            if self._limits_in_a_row >= LIMITS_IN_A_ROW:
                made.append([NOT_ASKED] * answers_per_call)
                continue
            before = len(made)
            calls = Calls(lambda number, first=before: make(first + number), total - before)
            _caller = _caller or Caller()
            _caller.start(calls)
            in_time = calls.wait(self._limit)
            made += calls.answers
            if calls.answers:
                self._limits_in_a_row = 0
            if not in_time:
                _caller = None
                self._limits_in_a_row += 1
                late = ("TRANSIENT_ERROR", f"TimeoutError: no answer within {self._limit:g} s")
                made.append([late] * answers_per_call)
        return [answer for answers in made for answer in answers]

    def _call(self, candidate: Candidate) -> Answer:
        self._trace.asks(candidate.delivery_id)
        try:
            return judge(self._hook.function(candidate.delivery))
        except BaseException as error:  # sys.exit() too would end this thread only
            return failed(error)
        finally:
            self._trace.has_answered()

    def _call_table(self, candidates: list[Candidate]) -> list[Answer]:
        self._trace.asks(*(candidate.delivery_id for candidate in candidates))
        try:
            answered = self._hook.function(_as_table(candidates, self._hook.table))
            return _judge_table(answered, len(candidates))
        except BaseException as error:
            return [failed(error)] * len(candidates)
        finally:
            self._trace.has_answered()


def _as_table(candidates: list[Candidate], library: str | None) -> Any:
    import pyarrow as pa

    types = {"redelivery_count": pa.int32(), "received_at": pa.timestamp("us", "UTC")}
    table = pa.table(
        {
            name: pa.array(
                [getattr(candidate.delivery, name) for candidate in candidates],
                types.get(name, pa.string()),
            )
            for name in ATTRIBUTES
        }
    )
    return table.to_pandas() if library == "pandas" else table


def _judge_table(answered: Any, expected: int) -> list[Answer]:
    is_pandas = hasattr(answered, "columns") and hasattr(answered, "iloc")
    names = list(answered.columns) if is_pandas else getattr(answered, "column_names", None)
    if names is None or "status" not in names or len(answered) != expected:
        shown = type(answered).__name__ if names is None else f"{len(answered)} rows of {names}"
        problem = f"answered {shown}, not a table of {expected} rows with a column status"
        return [("INVALID", cut(problem))] * expected
    statuses = _values(answered, "status", is_pandas)
    messages = _values(answered, "message", is_pandas) if "message" in names else [None] * expected
    return [judge(answer) for answer in zip(statuses, messages, strict=True)]


def _values(table: Any, column: str, is_pandas: bool) -> list[Any]:
    if not is_pandas:
        return table.column(column).to_pylist()
    values = table[column]
    return [
        None if missing else value for value, missing in zip(values, values.isna(), strict=True)
    ]


# ---- what is being asked, for whoever finds this process dead


class Trace:
    """A small file that says which deliveries a resolver is asked about just now.

    It is mapped into memory, so that it costs little and outlives the process. Where the folder
    is on another host, nothing is written.
    """

    SIZE = 4096

    def __init__(self, folder: str, hook: Hook, trigger_name: str) -> None:
        self._map: mmap.mmap | None = None
        self._who = f"{trigger_name}\n{hook.name}\n"
        if Path(folder).is_dir():
            with (Path(folder) / f"{os.getpid()}").open("w+b") as file:
                file.truncate(self.SIZE)
                self._map = mmap.mmap(file.fileno(), self.SIZE)

    def asks(self, *delivery_ids: str) -> None:
        """Write down what is asked about."""
        if self._map is not None:
            text = (self._who + "\n".join(delivery_ids)).encode()[: self.SIZE - 1]
            self._map[: len(text) + 1] = text + b"\0"

    def has_answered(self) -> None:
        """Nothing is asked just now."""
        if self._map is not None:
            self._map[0] = 0


# ---- the functions that Spark calls


def answer_chains(
    batches: Iterator[tuple[pa.Array, pa.Array, pa.Array, pa.Array]],
    trace_folder: str,
    load: Callable[[str], None],
) -> Iterator[pa.Array]:
    """Answers for chains of candidates: arrays of resolver, trigger name, limit in ms, chain.

    A chain is an array of structs with delivery_id, ends_on_new, ends_on_transient_error and the
    attributes of Delivery; its answers are structs with delivery_id, resolver_result, message.
    load: imports the module of a resolver.
    """
    import pyarrow as pa

    answer = pa.struct(
        [(name, pa.string()) for name in ("delivery_id", "resolver_result", "message")]
    )
    askings: dict[tuple[str, str, int], Asking] = {}
    for *asked_of, chains in batches:
        answers: list[list[dict[str, str | None]]] = [[] for _ in range(len(chains))]
        asked = list(zip(*(column.to_pylist() for column in asked_of), strict=True))
        candidates = _candidates(chains)
        for key in dict.fromkeys(asked):
            if key not in askings:
                resolver, trigger_name, limit_ms = key
                load(resolver)
                hook = registry.get("resolver", resolver)
                trace = Trace(trace_folder, hook, trigger_name)
                askings[key] = Asking(hook, limit_ms / 1000, trace)
            rows = [row for row, of_row in enumerate(asked) if of_row == key]
            answered = askings[key].ask([candidates[row] for row in rows])
            for row, answers_of_chain in zip(rows, answered, strict=True):
                # shorter than the chain where an answer has ended it
                answers[row] = [
                    {"delivery_id": candidate.delivery_id, "resolver_result": result, "message": m}
                    for candidate, (result, m) in zip(
                        candidates[row], answers_of_chain, strict=False
                    )
                ]
        yield pa.array(answers, pa.list_(answer))


def _candidates(chains: pa.Array) -> list[list[Candidate]]:
    """The chains as objects; read column by column, which Arrow does quickly."""
    flat = chains.flatten()
    columns = {name: flat.field(name).to_pylist() for name in _names(flat)}
    deliveries = zip(*(columns[name] for name in ATTRIBUTES), strict=True)
    candidates = [
        Candidate(delivery_id, Delivery(*values), ends_on_new, ends_on_transient_error)
        for delivery_id, values, ends_on_new, ends_on_transient_error in zip(
            columns["delivery_id"],
            deliveries,
            columns["ends_on_new"],
            columns["ends_on_transient_error"],
            strict=True,
        )
    ]
    found = iter(candidates)
    lengths = chains.value_lengths().to_pylist()
    return [[next(found) for _ in range(length or 0)] for length in lengths]


def _names(flat: pa.Array) -> list[str]:
    return [flat.type.field(number).name for number in range(flat.type.num_fields)]


def availabilities(batches: Iterator[pa.Array], load: Callable[[str], None]) -> Iterator[pa.Array]:
    """What resource monitors say, by name."""
    import pyarrow as pa

    availability = pa.struct([("is_available", pa.bool_()), ("message", pa.string())])
    for names in batches:
        answers = []
        for name in names.to_pylist():
            is_available, message = _is_available(name, load)
            answers.append({"is_available": is_available, "message": message})
        yield pa.array(answers, availability)


def _is_available(name: str, load: Callable[[str], None]) -> tuple[bool, str | None]:
    """An error or another answer than True or False is a no, with the reason."""
    try:
        load(name)
        answer = registry.get("resource_monitor", name).function()
    except BaseException as error:
        return False, failed(error)[1]
    if not isinstance(answer, bool):
        return False, cut(f"answered {answer!r}, not True or False")
    return answer, None
