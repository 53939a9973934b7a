"""Commands that show the report views: `report`, `metrics` and `alert`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_exactly_once.commands.place import Place, at_place
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.extras import require_extra

if TYPE_CHECKING:
    from dbt_exactly_once.report.page import Ask


def _ask(place: Place) -> tuple[Ask, str]:
    """A function that queries the report views of the lake, and their schema."""
    from dbt_exactly_once.report.page import ask_spark

    spark, schema = place.open_lake()
    return ask_spark(spark, schema), schema


def _file_of(output: str) -> Path:
    """The file to write; refused, before Spark starts, if its folder does not exist."""
    file = Path(output)
    if not file.absolute().parent.is_dir():
        raise ExactlyOnceError(f"{file}: there is no folder {file.parent}")
    return file


@click.command()
@at_place
@click.option("--output", metavar="FILE", default="exactly_once_report.html", help="The page.")
def report(place: Place, output: str) -> None:
    """Write a page that shows why.

    It has what was decided over time, what is in doubt and what waits.
    """
    # before the modules that need the extra are imported
    require_extra("report")
    from dbt_exactly_once.report.page import make_page

    file = _file_of(output)
    page = make_page(*_ask(place))
    file.write_text(page, encoding="utf-8")
    click.echo(f"{file} is written ({len(page.encode()) // 1024} kB)")


@click.command()
@at_place
@click.option("--output", metavar="FILE", help="Replace this file with them as a whole.")
def metrics(place: Place, output: str | None) -> None:
    """Print figures in the text format of Prometheus.

    They are those of the report.
    """
    from dbt_exactly_once.report.metrics import metrics_text

    file = _file_of(output) if output else None
    text = metrics_text(*_ask(place))
    if file is None:
        click.echo(text, nl=False)
        return
    # a program that collects the file never reads half of it
    written = file.with_name(f".{file.name}.{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(file)


@click.command()
@at_place
@click.option("--webhook", metavar="URL", help='Where to post {"text": ...}, as Slack takes it.')
@click.option("--memory", metavar="FILE", help="What was posted.  [default: logs/alert.json]")
def alert(place: Place, webhook: str | None, memory: str | None) -> None:
    """Post what is new to do, and what is solved.

    It posts each thing of the view things_to_do once when it comes and once when it is gone, and
    nothing where nothing has changed.
    """
    from dbt_exactly_once.report.alert import alert

    if not webhook:
        raise ExactlyOnceError(
            "nowhere to post: give the URL with --webhook or as EXACTLY_ONCE_ALERT_WEBHOOK"
        )
    file = Path(memory) if memory else place.project.folder / "logs" / "alert.json"
    change = alert(*_ask(place), webhook, file)
    if change is None:
        click.echo("nothing has changed: nothing is posted")
    else:
        click.echo(f"posted: {len(change.new)} new, {len(change.solved)} solved")
