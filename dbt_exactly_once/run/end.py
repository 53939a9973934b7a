"""The end of a run: its count must close, its branch is published, its lock is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_exactly_once.adapter.shared_session import BRANCH_SETTING, leave_run
from dbt_exactly_once.errors import ExactlyOnceError, errors_in_one_line, one_line
from dbt_exactly_once.run import maintenance
from dbt_exactly_once.run.consumption import keep_consumed, tag_of
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.guards import guard_scratch
from dbt_exactly_once.run.state import State
from dbt_exactly_once.run.upkeep import Upkeep

# the most triggers that a run lists at its end
MOST_TRIGGERS = 20


def publish(state: State, run: Run, has_news: bool, findings: Sequence[str]) -> None:
    """Publish the run's branch, `published_runs` first.

    has_news: whether the run has found anything that the last one did not know; if not, nothing is
    published. findings: lines for the end of the run. Raises ExactlyOnceError if the count does not
    close, or if another run has taken over meanwhile.
    """
    # on the branch of this run, which the session reads until it leaves it
    run.row = state.publications.row(run.publication_number)
    _leave_branch(state, run)
    counts = run.row["counts"]
    taken = counts["taken"]
    parts = [counts[name] for name in ("decided", "waiting", "unrouted", "rejected")]
    by_status = counts.get("decided_by_trigger") or []
    if taken != sum(parts):
        raise ExactlyOnceError(
            f"exactly_once: the count does not close: {taken} taken, but decided, waiting, "
            f"unrouted, rejected are {parts}; nothing is published; please report it"
        )
    if not run.publishes:
        run.messages += _summary("preview, nothing is published", taken, parts, by_status)
        run.messages += findings
        return
    unwritten = state.tables.ledgers.keys() - run.written - run.without_rows
    if unwritten:
        raise ExactlyOnceError(
            f"exactly_once: run {run.run_id} has not written {', '.join(sorted(unwritten))} "
            "and publishes nothing: use `dbt build` or `dbt run`"
        )
    guard_scratch(state, run)
    if not has_news:
        run.messages.append("nothing new, nothing published")
        return
    state.publications.publish(run)
    # the tags, as the start of this run has left them
    tagged = {name: {tag_of(state): consumed or ""} for name, consumed in run.consumed.items()}
    keep_consumed(state, run.landed, tagged)
    run.messages += _summary(f"published run {run.number}", taken, parts, by_status)
    run.messages += findings
    if run.found.get("removed"):
        run.messages.append(f"{run.found['removed']:,} expired history entries removed")


@errors_in_one_line()
def end(state: State, run: Run, variables: Mapping[str, Any]) -> None:
    """Remove what an unpublished run has left, and release the lock.

    variables: those of the project; `maintain_every_runs` decides whether the run ends with
    upkeep.
    """
    upkeep_every = variables["maintain_every_runs"]
    try:
        state.engine.forget_in_memory(run.copies + run.unproven_copies)
        _leave_branch(state, run)
        if not run.published:
            if not state.publications.forget(run):
                run.messages.append(
                    f"run {run.number} was published, but this command was stopped before it knew; "
                    "the next one finishes it"
                )
        elif upkeep_every and run.number % upkeep_every == 0:
            run.messages += _maintain(state, run, variables)
    finally:
        # even if the disk is full: the next run drops the branch
        state.lock.release(run.run_id)
    state.lock.drop_graves(run.run_id)


def _maintain(state: State, run: Run, variables: Mapping[str, Any]) -> list[str]:
    """Do the upkeep at the end of a run; an error in it is reported and undoes nothing."""
    if state.lock.holder() != run.run_id:
        return ["no upkeep: another run has taken over"]
    try:
        upkeep = Upkeep.of_last(state, run.run_id)
        # a file is an orphan only after a day
        return maintenance.maintain(state, upkeep, variables, not upkeep.was_done_today())
    except Exception as error:
        return [
            f"upkeep failed, the run is published all the same: {one_line(error)}; "
            "`dbt run-operation maintain` does it again"
        ]


def _leave_branch(state: State, run: Run) -> None:
    """Go back to main, unless another run that shares the session has set its branch."""
    if state.engine.setting(BRANCH_SETTING) == run.branch:
        leave_run(state.engine)


def _summary(
    outcome: str, taken: int, parts: Sequence[int], by_status: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What a run has decided, in a line for the run and one for each of the first triggers."""
    decided, waiting, unrouted, rejected = parts
    lines = [
        f"{outcome}: {taken:,} taken, {decided:,} decided, {waiting:,} waiting, "
        f"{unrouted:,} unrouted, {rejected:,} rejected"
    ]
    by_trigger: dict[str, list[str]] = {}
    for item in by_status:
        by_trigger.setdefault(item["trigger_name"], []).append(
            f"{item['documents']:,} {item['status']}"
        )
    lines += [f"{name}: {', '.join(by_trigger[name])}" for name in list(by_trigger)[:MOST_TRIGGERS]]
    if len(by_trigger) > MOST_TRIGGERS:
        lines.append(f"and {len(by_trigger) - MOST_TRIGGERS} more triggers, see run_log")
    return lines
