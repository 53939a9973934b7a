"""The loop of `exactly-once run`: it lands, decides and works, sleeps, and does so again.

Spark is started once, the project parsed once. A round does what the single commands do, one after
the other, so a killed loop leaves what a killed command leaves. A round that fails is reported and
repeated, after a pause that grows with each failure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.dbt_commands import SILENT, dbt, parse
from dbt_exactly_once.adapter.engine import literal, run_in
from dbt_exactly_once.adapter.session import PACKAGE, Project, find_project, options_of
from dbt_exactly_once.adapter.session_engine import SessionEngine
from dbt_exactly_once.adapter.shared_session import BRANCH_SETTING
from dbt_exactly_once.adapter.tables import Table
from dbt_exactly_once.errors import one_line
from dbt_exactly_once.landing.files import UnreadableFileError
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.landing.sources import Sources
from dbt_exactly_once.loop.round import Round, pause_after
from dbt_exactly_once.resolvers.hooks import load_hooks
from dbt_exactly_once.run.project_files import Seen, files_of_project
from dbt_exactly_once.run.state import State
from dbt_exactly_once.services.model_services import model_services
from dbt_exactly_once.services.python_services import lists_work, worker_of

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

# if the project is new or has changed: also its seeds and views
WHOLE = ("build",)
# all other rounds; without artifacts, which a loop would pile up
SCHEDULED = ("build", "--selector", "hot_path", "--no-write-json")
# how often the loop looks for corrected files while it waits to repeat a failed round
LOOK_SECONDS = 1.0
# how soon a signal is noticed; a service that has ended is noticed at once
POLL_SECONDS = 0.5


class Loop:
    """Rounds in one session of Spark, by one process."""

    def __init__(
        self,
        spark: SparkSession,
        project: Project,
        profiles_dir: Path,
        target: str | None,
        sources: Sources,
        works: bool,
        stop: threading.Event,
        echo: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._engine = SessionEngine(run_in(spark))
        self._project = project
        self._profiles_dir = profiles_dir
        self._options = options_of(project, profiles_dir, target)
        self._sources = sources
        self._works = works
        self._stop = stop
        self._echo = echo
        # the project as it was parsed last, and the files that it was parsed from
        self._manifest: Manifest | None = None
        self._tables: State
        self._parsed: Seen = {}
        # whether all of it was built since then, and whether no failed run has left anything
        self._built = False
        self._is_tidy = True
        # main of the tables that the last run has read and published; empty after a failure
        self._known: dict[str, str] = {}

    def run(self, every: float, once: bool = False) -> int:
        """Rounds until a signal comes, or one; returns the exit status.

        every: seconds from the start of a round to that of the next.
        """
        failures = 0
        while True:
            begun = time.monotonic()
            found = self.round()
            if found.failed and self._spark_is_gone():
                self._tell(found, "Spark is gone, and the loop ends: start it again")
                return 1
            failures = failures + 1 if found.failed else 0
            pause = pause_after(every, failures)
            ends = once or self._stop.is_set()
            self._tell(found, "the loop ends" if ends else f"tries again in {pause:.0f} s")
            if once:
                return 1 if found.failed else 0
            if ends or self._sleeps_until(begun + pause, bool(failures)):
                return 0

    def round(self) -> Round:
        """Land, decide, work; if one fails, the next ones still run, on what is there."""
        found = Round()
        try:
            self._read_project()
        except Exception as error:
            found.failed.append(one_line(error))
            return found
        for step in (self._land, self._decide, self._work):
            if self._stop.is_set():
                break
            try:
                step(found)
            except Exception as error:
                found.failed.append(one_line(error))
        return found

    def _tell(self, found: Round, next_step: str) -> None:
        line = found.line(next_step)
        if line:
            self._echo(f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} {line}")

    def _sleeps_until(self, due: float, has_failed: bool) -> bool:
        """Sleep; True if a signal has come. After a failure, a changed file ends the sleep."""
        while (left := due - time.monotonic()) > 0:
            if self._stop.wait(min(left, LOOK_SECONDS)):
                return True
            if has_failed and self._files() != self._parsed:
                return False
        return self._stop.is_set()

    def _spark_is_gone(self) -> bool:
        try:
            self._engine.rows("select 1")
        except Exception:
            return True
        return False

    # ---------------------------------------------------------------- the project

    def _files(self) -> Seen:
        return files_of_project(self._project.folder, self._profiles_dir)

    def _read_project(self) -> None:
        """Parse the project, unless that was done since one of its files last changed."""
        files = self._files()
        if self._manifest is not None and files == self._parsed:
            return
        self._parsed, self._manifest, self._built = files, None, False
        manifest = parse(self._options)
        self._project = find_project(self._project.folder)
        self._tables = State.of_graph(self._engine, manifest.flat_graph)
        self._manifest = manifest

    # ---------------------------------------------------------------- land

    def _land(self, found: Round) -> None:
        """Land what is new in the sources, in one landing.

        A file that cannot be read does not stop the others, and is left out until it changes.
        """
        new = self._sources.new_files()
        while new:
            try:
                landing = land(self._spark, self._project, new)
            except UnreadableFileError as error:
                look = new.pop(error.path)
                found.failed.append(error.msg)
                if not error.may_pass:
                    found.failed[-1] += " (left out until it changes)"
                    self._sources.settle(error.path, look)
                continue
            found.messages.append(str(landing))
            for path, look in new.items():
                self._sources.settle(path, look)
            return

    # ---------------------------------------------------------------- decide

    def _decide(self, found: Round) -> None:
        """Start a run, if it may find anything to do."""
        if self._built and not self._has_news():
            return
        self._tidy_up()
        landed = self._where(self._tables.tables.landed.values())
        self._known, self._is_tidy = {}, False
        arguments = SCHEDULED if self._built else WHOLE
        outcome = dbt([*arguments, *SILENT, *self._options], self._manifest)
        found.messages += outcome.messages
        found.failed += outcome.failures
        if outcome.has_built:
            self._built = self._is_tidy = True
            self._known = landed | self._where([self._tables.tables.record])
        self._tidy_up()

    def _tidy_up(self) -> None:
        """Clean up after a failed run: this process lives, so its lock would stop the next run."""
        if not self._is_tidy:
            self._engine.reset(BRANCH_SETTING)
            self._tables.lock.release_own()
            self._is_tidy = True

    def _has_news(self) -> bool:
        """Whether a run may find anything: something was landed or published, or time has passed.

        If nothing was landed or published since the last run, time alone changes something only if
        a delivery waits, a trigger is suspended, or open work has something for the next run.
        """
        tables = self._tables.tables
        if self._known != self._where([*tables.landed.values(), tables.record]):
            return True
        graph = self._manifest.flat_graph  # type: ignore[union-attr]
        view = graph["nodes"][f"model.{PACKAGE}.execution_state"]
        models = [literal(model.service) for model in model_services(graph)]
        is_for_model = f"service in ({', '.join(models)})" if models else "false"
        rows = self._engine.rows(
            f"select (select count(*) from {tables.ledgers['waiting_deliveries'].relation}) "
            f"+ (select count_if(size(suspensions) > 0) "
            f"from {tables.ledgers['trigger_states'].relation}) "
            "+ (select count_if(state in ('ENDED', 'INTERRUPTED') "
            f"or (state = 'DISPATCHED' and {is_for_model})) "
            f"from {view['schema']}.{view['alias']})"
        )
        return bool(rows[0][0])

    def _where(self, tables: Iterable[Table]) -> dict[str, str]:
        """The snapshot of main of each table, read fresh."""
        return {
            table.relation: (self._engine.properties(table.relation) or {}).get(
                "current-snapshot-id", "none"
            )
            for table in tables
        }

    # ---------------------------------------------------------------- work

    def _work(self, found: Round) -> None:
        """Call the services of python_udfs for what is to be done, as `worker --once` does."""
        schema = self._tables.tables.schema
        # the first build makes the view; a later one that fails leaves it as it was
        if not self._works or not lists_work(self._engine, schema):
            return

        def stop_with_loop() -> None:
            if self._stop.is_set():
                worker.stop()

        worker = worker_of(
            self._engine,
            schema,
            self._tables.tables.landed["trigger_executions"].relation,
            load_hooks(self._project.folder),
            poll_seconds=POLL_SECONDS,
            echo=lambda _: None,
            between=stop_with_loop,
        )
        worker.run(once=True, tries_again=False)
        counts = [f"{number} {event}" for event, number in worker.counts.items() if number]
        found.messages += [f"services: {', '.join(counts)}"] if counts else []
