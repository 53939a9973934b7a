"""The command `report`."""

from __future__ import annotations

from pathlib import Path

import click

from dbt_exactly_once.commands.place import Place, at_place
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.extras import require_extra


@click.command()
@at_place
@click.option("--output", metavar="FILE", default="exactly_once_report.html", help="The page.")
def report(place: Place, output: str) -> None:
    """Write a page that shows why.

    It has what was decided over time, what is in doubt and what waits.
    """
    # before what draws with it is imported
    require_extra("report")
    from dbt_exactly_once.report.page import ask_spark, make_page

    file = Path(output)
    if not file.absolute().parent.is_dir():
        raise ExactlyOnceError(f"{file}: there is no folder {file.parent}")
    spark, schema = place.open_lake()
    page = make_page(ask_spark(spark, schema), schema)
    file.write_text(page, encoding="utf-8")
    click.echo(f"{file} is written ({len(page.encode()) // 1024} kB)")
