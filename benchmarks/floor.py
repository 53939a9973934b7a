"""The floor of a run: one delivery, in a session that is warm."""

from __future__ import annotations

import time

from lake import Lake

WAYS = {
    "transaction": ("run", "--select", "tag:transaction"),
    "hot_path": ("build", "--selector", "hot_path"),
}


def small_runs(lake: Lake, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Seconds, and Spark's SQL executions and jobs, of runs that take one delivery.

    Executions are those in Spark's own list; a statement has one to three.
    """
    store = lake.spark._jsparkSession.sharedState().statusStore()

    def executions() -> dict[int, int]:
        listed = store.executionsList()
        found = (listed.apply(place) for place in range(listed.size()))
        return {execution.executionId(): execution.jobs().size() for execution in found}

    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for way, command in WAYS.items():
        # new_documents has to make up for runs of the transaction alone
        lake.run("build", "--selector", "hot_path")
        for turn in range(rounds):
            lake.land(1, 0.0)
            before = max(executions())
            start = time.perf_counter()
            lake.run(*command)
            seconds = time.perf_counter() - start
            jobs = [number for name, number in executions().items() if name > before]
            found[way].append({"seconds": seconds, "executions": len(jobs), "jobs": sum(jobs)})
            print(
                f"   {way}, round {turn + 1}: {seconds:.2f} s, {len(jobs)} executions", flush=True
            )
    return found
