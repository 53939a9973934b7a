"""The command `exactly-once worker`: calls the user's services for the documents to be processed.

Several workers may run at once; only one of them starts a document (see executions.py). STARTED has
landed before the service is called. So if a worker is killed, exactly the documents whose service
was at work are in doubt.
"""

from __future__ import annotations

import inspect
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime, timezone
from itertools import count
from typing import Any

from dbt_exactly_once.adapter.engine import Engine, in_utc, literal
from dbt_exactly_once.errors import ExactlyOnceError, error_text, one_line
from dbt_exactly_once.process import at_signals
from dbt_exactly_once.services.calls import Call, as_json, rows_of, safe_echo
from dbt_exactly_once.services.executions import (
    ERROR,
    STARTED,
    SUCCESS,
    TRANSIENT_ERROR,
    Executions,
)

# after so many failed attempts to record outcomes the worker gives up, if no service is at work
REPORTS = 6
# true of what a coroutine or generator function returns: its code has not run
UNRUN = (inspect.isawaitable, inspect.isgenerator, inspect.isasyncgen)
# seconds: a failed write is retried after one, then after twice as long each time, up to this
LONGEST_PAUSE = 30.0


class Worker:
    """Takes work, calls services, records their outcomes; all SQL runs in the thread of `run`."""

    def __init__(
        self,
        engine: Engine,
        schema: str,
        executions: Executions,
        services: Mapping[str, Callable[[Any], Any]],
        work_type: type,
        transient_error: type[Exception],
        concurrency: int = 1,
        poll_seconds: float = 5,
        echo: Callable[[str], None] = print,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._schema = schema
        self._executions = executions
        self._services = dict(services)
        self._work_type = work_type
        self._transient_error = transient_error
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._echo = safe_echo(echo)
        # called again and again, in the thread of all SQL
        self._between = between
        self._at_work: list[Call] = []
        # calls in _at_work that have ended and are not recorded yet
        self._ended_calls: list[Call] = []
        self._reports = 0
        self._report_at = 0.0
        # ended calls; None wakes the waiting thread
        self._ended: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._stopping = False
        self.counts: dict[str, int] = dict.fromkeys((SUCCESS, ERROR, TRANSIENT_ERROR), 0)

    def stop(self) -> None:
        """Take no more work and return once the calls at work have ended."""
        if not self._stopping:
            self._stopping = True
            self._ended.put(None)

    def run(self, once: bool = False, tries_again: bool = True) -> None:
        """Work until stopped; with `once`, until nothing is left to do or to try again.

        tries_again: whether it waits for what is to be tried again later.
        """
        while not (self._stopping and not self._at_work):
            self._between()
            took = 0
            if not self._stopping and len(self._at_work) < self._concurrency:
                took = self._take_if_possible()
            is_idle = not took and not self._at_work
            if once and is_idle and not (tries_again and self._to_be_tried_again()):
                return
            self._ended_calls += self._wait()
            self._record()
            self._report_still_at_work()

    # ---------------------------------------------------------------- take

    def _take_if_possible(self) -> int:
        """Take work; an error there does not end the worker while services are at work."""
        try:
            return self._take(self._concurrency - len(self._at_work))
        except Exception as error:
            if not self._at_work:
                raise
            self._echo(f"cannot look for more work, tries again: {one_line(error)}")
            return 0

    def _take(self, most: int) -> int:
        """Start work and call its services; returns how many documents it took."""
        started_at = _now()
        taken = self._executions.start(
            lambda: self._look_up(most),
            lambda calls: rows_of(calls, STARTED),
        )
        for call in taken or []:
            call.started_at = started_at
            call.beat_after(call.timeout_seconds)
            self._at_work.append(call)
            threading.Thread(target=self._call, args=(call,), daemon=True).start()
        return len(taken or [])

    def _look_up(self, most: int) -> list[Call] | None:
        now = _now()
        attributes = ", ".join(f"work.{attribute.name}" for attribute in fields(self._work_type))
        rows = self._engine.rows(
            f"select {attributes}, settings.execution_timeout_ms "
            f"from {self._schema}.dispatched_documents as work "
            # a seed that no run has checked may name a trigger twice
            "inner join (select trigger_name, max(execution_timeout_ms) as execution_timeout_ms "
            f"from {self._schema}.trigger_settings group by trigger_name) as settings "
            "on work.trigger_name = settings.trigger_name "
            f"where {self._of_services('work.service')} "
            f"order by work.received_at, work.delivery_id, work.trigger_name limit {most}"
        )
        calls = [
            Call(self._work_type(*map(in_utc, values)), timeout_ms / 1000, now)
            for *values, timeout_ms in rows
        ]
        return calls or None

    def _to_be_tried_again(self) -> bool:
        return bool(
            self._engine.rows(
                f"select 1 from {self._schema}.execution_state where state = 'RETRY' "
                f"and {self._of_services('service')} limit 1"
            )
        )

    def _of_services(self, column: str) -> str:
        return f"{column} in ({', '.join(literal(name) for name in self._services)})"

    def _call(self, call: Call) -> None:
        try:
            answer = self._services[call.work.service](call.work)
            if any(is_unrun(answer) for is_unrun in UNRUN):
                raise TypeError(f"it returned a {type(answer).__name__}: nothing has run")
            call.event, call.message = SUCCESS, answer if isinstance(answer, str) else None
            call.result, lost = as_json(answer)
            call.message = call.message or lost
        except self._transient_error as error:
            call.event, call.message = TRANSIENT_ERROR, error_text(error)
        except BaseException as error:  # sys.exit() too would end this thread only
            call.event, call.message = ERROR, error_text(error)
        finally:
            call.ended_at = _now()
            self._ended.put(call)

    # ---------------------------------------------------------------- record

    def _wait(self) -> list[Call]:
        """The calls that have ended; waits for the first one, or until it is time to look again."""
        found: list[Call | None] = []
        until = [call.beat_at for call in self._at_work]
        until += [self._report_at] if self._ended_calls else []
        seconds = min([self._poll_seconds, *(moment - time.monotonic() for moment in until)])
        try:
            found.append(self._ended.get(timeout=max(seconds, 0.01)))
            while True:
                found.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        return [call for call in found if call is not None]

    def _record(self) -> None:
        """Record the outcomes of ended calls; a write that fails is retried later."""
        ended = self._ended_calls
        if not ended or time.monotonic() < self._report_at:
            return
        for call in ended:
            call.outcome = call.outcome or rows_of([call], str(call.event))
        rows = " union all ".join(call.outcome for call in ended)
        try:
            self._executions.append(rows)
        except Exception as error:
            self._reports += 1
            named = ", ".join(f"{call.document} ({call.event})" for call in ended)
            if self._reports >= REPORTS and len(ended) == len(self._at_work):
                raise ExactlyOnceError(
                    f"exactly_once: the outcome of {named} cannot be recorded, land it with "
                    f"`exactly-once land --table trigger_executions`: {one_line(error)}"
                ) from error
            self._echo(
                f"the outcome of {named} is not recorded yet, tries again: {one_line(error)}"
            )
            self._report_at = time.monotonic() + min(2 ** (self._reports - 1), LONGEST_PAUSE)
            return
        self._ended_calls, self._reports, self._report_at = [], 0, 0.0
        for call in ended:
            self._at_work.remove(call)
            self.counts[str(call.event)] += 1
            message = f": {call.message}" if call.message else ""
            self._echo(
                f"{call.work.service}: {call.document}, attempt {call.work.attempt}: "
                f"{call.event}{message}"
            )

    def _report_still_at_work(self) -> None:
        """Write heartbeats; one that cannot be written is retried after a second."""
        late = [call for call in self._at_work if call.beat_at <= time.monotonic()]
        if not late:
            return
        try:
            self._executions.append(rows_of(late, STARTED))
        except Exception as error:
            named = ", ".join(call.document for call in late)
            self._echo(f"cannot record that {named} is at work, tries again: {one_line(error)}")
            for call in late:
                call.beat_after(1)
            return
        for call in late:
            call.beat_after(call.timeout_seconds)

    @property
    def left(self) -> list[str]:
        """The documents whose service is at work."""
        return [call.document for call in self._at_work]


@contextmanager
def finished_at_signals(worker: Worker, echo: Callable[[str], None]) -> Iterator[None]:
    """Stop a worker at the first SIGTERM or SIGINT, and leave its work in doubt at the second."""
    signals = count(1)

    def stop() -> None:
        if next(signals) > 1:
            # not an Exception: that could be taken for a failure of the call that it interrupts
            raise KeyboardInterrupt
        if worker.left:
            echo(f"stopping: waits for {', '.join(worker.left)}; a second signal leaves them")
        worker.stop()

    with at_signals(stop):
        try:
            yield
        except KeyboardInterrupt:
            raise ExactlyOnceError(
                "exactly_once: stopped at once; these services were at work and their documents "
                f"come back in doubt: {', '.join(worker.left) or 'none'}"
            ) from None


def _now() -> datetime:
    return datetime.now(timezone.utc)
