"""The command `run`."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import click

from dbt_exactly_once.commands.place import Place, at_place
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.process import stopped_by_signals

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Time(click.ParamType):
    """A length of time, in seconds if no unit is given."""

    name = "time"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", value)
        if match is None:
            self.fail(f"{value!r} is no time such as 500ms, 10s, 2m, 1h.", param, ctx)
        return float(match[1]) * SECONDS[match[2] or "s"]


@click.command()
@at_place
@click.option("--every", type=Time(), default="10s", help="From one round to the next.")
@click.option(
    "--land", multiple=True, metavar="SOURCE", help="Files to land: one, or a folder of them."
)
@click.option("--work", is_flag=True, help="Also call the services of python_udfs.")
@click.option("--once", is_flag=True, help="End after one round, with status 1 if it failed.")
def run(place: Place, every: float, land: tuple[str, ...], work: bool, once: bool) -> int:
    """Land, decide and work in a loop that stays warm.

    A round that fails is reported and repeated, after ever longer. At Ctrl-C or SIGTERM the loop
    ends once the present step is done, with status 0.
    """
    from dbt_exactly_once.adapter.session import profiles_folder
    from dbt_exactly_once.adapter.startup import expect_many_small_runs
    from dbt_exactly_once.landing.sources import Sources
    from dbt_exactly_once.loop.loop import Loop
    from dbt_exactly_once.resolvers.hooks import load_hooks
    from dbt_exactly_once.services.python_services import choose_services

    if work:
        # without a service each round would fail
        hooks = load_hooks(place.project.folder)
        try:
            choose_services(hooks)
        except ExactlyOnceError as error:
            raise ExactlyOnceError(
                f"{error.msg}; leave out --work where all services are models"
            ) from error
    sources = Sources(land)
    folder = profiles_folder(place.project, place.profiles_dir)
    expect_many_small_runs(place.credentials.server_side_parameters)
    # only the lines of runs go to standard output
    begun = datetime.now(timezone.utc)
    click.echo(f"{begun:%Y-%m-%dT%H:%M:%SZ} starting; the first round is a whole build", err=True)
    spark = place.open_session()
    # after the session: Spark sets a signal handler of its own when it starts
    with stopped_by_signals() as stop:
        loop = Loop(spark, place.project, folder, place.target, sources, work, stop, click.echo)
        status = loop.run(every, once)
        if stop.is_set():
            click.echo("stopped")
    return status
