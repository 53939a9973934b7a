"""Commands about the lake and its Spark: `move-catalog`, `migrate`, `thrift-server`, `prepare`."""

from __future__ import annotations

from uuid import uuid4

import click

from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.adapter.session import parse_graph, schema_of_ledgers
from dbt_exactly_once.commands.place import Place, at_place


@click.command()
@at_place
@click.option("--to", required=True, metavar="TARGET", help="The target whose catalog takes them.")
def move_catalog(place: Place, to: str) -> None:
    """List the lake's tables in another catalog.

    Their files stay where they are.
    """
    from dbt_exactly_once.run.move_catalog import move_catalog

    moved = move_catalog(place.project, place.profiles_dir, place.target, to)
    click.echo(f"{len(moved)} tables moved: {', '.join(moved)}")
    click.echo(f"now `dbt build --target {to}`, which makes the views there")


@click.command()
@at_place
def migrate(place: Place) -> None:
    """Bring a lake that an earlier version has made to this one.

    Adds to its tables what this version needs, and notes the version.
    """
    from dbt_exactly_once.run.operations import Operations
    from dbt_exactly_once.run.state import State

    spark = place.open_session()
    graph = parse_graph(place.project, place.profiles_dir, place.target)
    state = State.of_graph(Engine(run_in(spark)), graph)
    for line in Operations(state, str(uuid4()), place.project.variables).migrate():
        click.echo(line)


@click.command()
@at_place
@click.option("--host", default="127.0.0.1")
@click.option("--port", type=click.IntRange(1, 65535), default=10000)
@click.option("--readers", is_flag=True, help="For BI tools and people: a session for each.")
@click.option(
    "--without-authentication", is_flag=True, help="Listen beyond this machine, open to everybody."
)
def thrift_server(
    place: Place, host: str, port: int, readers: bool, without_authentication: bool
) -> None:
    """Serve the lake to dbt, or to readers, over Thrift."""
    from dbt_exactly_once.thrift_server import check_address, serve

    check_address(place.credentials, host, port, without_authentication)
    schema = schema_of_ledgers(place.project, place.credentials, place.profiles_dir, place.target)
    serve(place.project, place.credentials, schema, host, port, readers)


@click.command()
@at_place
def prepare(place: Place) -> None:
    """Let Spark start quicker on this machine.

    Keeps the classes of a run in an archive, where Java and the jars have none yet.
    """
    from dbt_exactly_once.adapter.prepare import prepare

    click.echo(prepare(place.project, place.profiles_dir, place.target))
