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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from python_udfs._hooks import Delivery, Hook, TransientError, close_resources, registry

if TYPE_CHECKING:
    import pyarrow as pa

STATUSES = ("NEW", "DUPLICATE", "IN_DOUBT")
LONGEST_MESSAGE = 1000
# after so many calls in a row that overran their limit, the resolver counts as down
LIMITS_IN_A_ROW = 3
IDLE_SECONDS = 5.0
ATTRIBUTES = tuple(attribute.name for attribute in fields(Delivery))

Answer = tuple[str, "str | None"]
NOT_ASKED: Answer = ("NOT_ASKED", None)


class Candidates:
    """The deliveries to ask about, column by column, and the chains they are in."""

    def __init__(self, chains: pa.ListArray) -> None:
        self.rows: pa.StructArray = chains.flatten()
        ends = list(accumulate(length or 0 for length in chains.value_lengths().to_pylist()))
        self.chains = [range(start, end) for start, end in pairwise([0, *ends])]

    @cached_property
    def deliveries(self) -> list[Delivery]:
        columns = (self.rows.field(name).to_pylist() for name in ATTRIBUTES)
        return [Delivery(*values) for values in zip(*columns, strict=True)]

    def delivery_ids_of(self, numbers: Sequence[int]) -> list[str]:
        return self._of("delivery_id", numbers).to_pylist()

    @cached_property
    def _ends_on(self) -> dict[str, list[bool]]:
        return {
            "NEW": self.rows.field("ends_on_new").to_pylist(),
            "TRANSIENT_ERROR": self.rows.field("ends_on_transient_error").to_pylist(),
        }

    def ends_chain(self, number: int, answer: Answer) -> bool:
        """Whether this answer ends the chain for now: later candidates of it are not asked."""
        result, _ = answer
        return result == "NOT_ASKED" or (result in self._ends_on and self._ends_on[result][number])

    def table(self, numbers: Sequence[int], library: str | None) -> Any:
        """Some of them as a table with a column for each attribute of Delivery."""
        import pyarrow as pa

        table = pa.table([self._of(name, numbers) for name in ATTRIBUTES], ATTRIBUTES)
        return table.to_pandas() if library == "pandas" else table

    def _of(self, name: str, numbers: Sequence[int]) -> pa.Array:
        import pyarrow as pa

        column = self.rows.field(name)
        return column if len(numbers) == len(column) else column.take(pa.array(numbers))


# ---- what an answer means


def judge(answer: Any) -> Answer:
    """Result and message of what a resolver has returned; INVALID if it is not an answer."""
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
    return status, cut(message)


def failed(error: BaseException) -> Answer:
    """Result and message of what a resolver has raised: type and text."""
    try:
        text = str(error)
    except Exception:
        text = ""
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return ("TRANSIENT_ERROR" if isinstance(error, TransientError) else "ERROR"), cut(text)


def cut(message: str) -> str:
    """The part of a message that is kept; half of a surrogate pair becomes a question mark."""
    return message[:LONGEST_MESSAGE].encode("utf-8", "replace").decode("utf-8")


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
        """Wait for their end; False if one takes longer than its limit in seconds."""
        while True:
            if self.ended.wait(max(self.started + limit - time.monotonic(), 0.001)):
                return True
            with self.lock:
                if len(self.answers) < self.total and time.monotonic() - self.started >= limit:
                    self.given_up = True
                    return False


class Caller:
    """The thread that calls resolvers; if a call hangs, the thread is abandoned and replaced.

    After some idle seconds it closes what resolvers have made in it: Spark ends its workers without
    running Python's exit handlers.
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

    def ask(
        self, candidates: Candidates, rows: Sequence[int], answers: list[Answer | None]
    ) -> None:
        """Fill in the answers for the chains of some rows, each up to the answer that ends it."""
        open_chains = [candidates.chains[row] for row in rows if candidates.chains[row]]
        while open_chains:
            numbers = [chain.start for chain in open_chains]
            for number, answer in zip(numbers, self._round(candidates, numbers), strict=True):
                answers[number] = answer
            open_chains = [
                chain[1:]
                for chain in open_chains
                if len(chain) > 1 and not candidates.ends_chain(chain.start, answers[chain.start])
            ]

    def _round(self, candidates: Candidates, numbers: list[int]) -> list[Answer]:
        if self._hook.table is not None:
            return self._make_calls(
                1, lambda _: self._call_table(candidates, numbers), len(numbers)
            )
        ids = candidates.delivery_ids_of(numbers)
        deliveries = candidates.deliveries
        return self._make_calls(
            len(numbers), lambda n: [self._call(ids[n], deliveries[numbers[n]])], 1
        )

    def _make_calls(
        self, total: int, make: Callable[[int], list[Answer]], answers_per_call: int
    ) -> list[Answer]:
        """Make calls until each has answered or overrun its limit, or the resolver is down."""
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

    def _call(self, delivery_id: str, delivery: Delivery) -> Answer:
        self._trace.asks([delivery_id])
        try:
            return judge(self._hook.function(delivery))
        except BaseException as error:  # sys.exit() too would end this thread only
            return failed(error)
        finally:
            self._trace.has_answered()

    def _call_table(self, candidates: Candidates, numbers: list[int]) -> list[Answer]:
        self._trace.asks(candidates.delivery_ids_of(numbers[: Trace.MOST]))
        try:
            table = candidates.table(numbers, self._hook.table)
            return _judge_table(self._hook.function(table), len(numbers))
        except BaseException as error:
            return [failed(error)] * len(numbers)
        finally:
            self._trace.has_answered()


def _judge_table(answered: Any, expected: int) -> list[Answer]:
    is_pandas = hasattr(answered, "columns") and hasattr(answered, "iloc")
    names = list(answered.columns) if is_pandas else getattr(answered, "column_names", None)
    if names is None or "status" not in names or len(answered) != expected:
        shown = type(answered).__name__ if names is None else f"{len(answered)} rows of {names}"
        problem = f"answered {shown}, not a table of {expected} rows with a column status"
        return [("INVALID", cut(problem))] * expected
    statuses = _values(answered, "status", is_pandas)
    if "message" not in names:
        return [judge(status) for status in statuses]
    messages = _values(answered, "message", is_pandas)
    return [judge(answer) for answer in zip(statuses, messages, strict=True)]


def _values(table: Any, column: str, is_pandas: bool) -> list[Any]:
    if not is_pandas:
        return table.column(column).to_pylist()
    values = table[column]
    return values.astype(object).where(values.notna(), None).tolist()


# ---- what is being asked, in case this process dies


class Trace:
    """A small file that names the deliveries that a resolver is being asked about.

    It is mapped into memory, so that it costs little and outlives the process. If the folder
    is on another host, nothing is written.
    """

    SIZE = 4096
    MOST = 20

    def __init__(self, folder: str, hook: Hook, trigger_name: str) -> None:
        self._map: mmap.mmap | None = None
        self._who = f"{trigger_name}\n{hook.name}\n"
        self._thread = 0
        if Path(folder).is_dir():
            with (Path(folder) / f"{os.getpid()}").open("w+b") as file:
                file.truncate(self.SIZE)
                self._map = mmap.mmap(file.fileno(), self.SIZE)

    def asks(self, delivery_ids: Sequence[str]) -> None:
        """Write down what is asked about."""
        if self._map is not None:
            self._thread = threading.get_ident()
            text = (self._who + "\n".join(delivery_ids)).encode()[: self.SIZE - 1]
            self._map[: len(text) + 1] = text + b"\0"

    def has_answered(self) -> None:
        """Clear the trace, unless the answer comes from an abandoned call."""
        if self._map is not None and self._thread == threading.get_ident():
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
    askings: dict[tuple[str, str, int], Asking] = {}
    for *asked_of, chains in batches:
        candidates = Candidates(chains)
        asked = list(zip(*(column.to_pylist() for column in asked_of), strict=True))
        answers: list[Answer | None] = [None] * len(candidates.rows)
        for key in dict.fromkeys(asked):
            if key not in askings:
                resolver, trigger_name, limit_ms = key
                load(resolver)
                hook = registry.get("resolver", resolver)
                trace = Trace(trace_folder, hook, trigger_name)
                askings[key] = Asking(hook, limit_ms / 1000, trace)
            rows = [row for row, of_row in enumerate(asked) if of_row == key]
            askings[key].ask(candidates, rows, answers)
        yield _as_array(candidates, answers)


def _as_array(candidates: Candidates, answers: list[Answer | None]) -> pa.Array:
    """The answers of each chain; fewer than its candidates if an answer has ended it."""
    import pyarrow as pa

    given = [answer for answer in answers if answer is not None]
    delivery_ids = candidates.rows.field("delivery_id")
    # the chains are one after the other in `answers`; in each, the first candidates are answered
    ends: Iterable[int] = (chain.stop for chain in candidates.chains)
    if len(given) < len(answers):
        is_given = [answer is not None for answer in answers]
        delivery_ids = delivery_ids.filter(pa.array(is_given))
        given_before = list(accumulate(is_given, initial=0))
        ends = (given_before[end] for end in ends)
    results = [result for result, _ in given]
    messages = [message for _, message in given]
    asked = pa.StructArray.from_arrays(
        [delivery_ids, pa.array(results, pa.string()), pa.array(messages, pa.string())],
        names=["delivery_id", "resolver_result", "message"],
    )
    return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), asked)


def availabilities(batches: Iterator[pa.Array], load: Callable[[str], None]) -> Iterator[pa.Array]:
    """What resource monitors answer, by name."""
    import pyarrow as pa

    availability = pa.struct([("is_available", pa.bool_()), ("message", pa.string())])
    for names in batches:
        yield pa.array([_is_available(name, load) for name in names.to_pylist()], availability)


def _is_available(name: str, load: Callable[[str], None]) -> tuple[bool, str | None]:
    """An error, or an answer other than True or False, is a no, with the reason."""
    try:
        load(name)
        answer = registry.get("resource_monitor", name).function()
        if isinstance(answer, bool):
            return answer, None
        return False, cut(f"answered {answer!r}, not True or False")
    except BaseException as error:
        return False, failed(error)[1]
