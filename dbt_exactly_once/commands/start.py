"""The first command: `init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from dbt_exactly_once.adapter.session import PROJECT_FILE
from dbt_exactly_once.commands.place import debug_option


@click.command()
@click.argument("folder", metavar="[DIR]", default=".")
@click.option(
    "--print-package",
    is_flag=True,
    help="Print where the package is, for packages.yml, and do nothing else.",
)
@debug_option
def init(folder: str, print_package: bool) -> None:
    """Make a dbt project around this package.

    DIR is the current folder by default. Where a project is there, the package is added to it. No
    file is overwritten: the command lists what is new, what stays, and what is left to do by hand.
    """
    from dbt_exactly_once.starter import initialise, install_packages, package_folder

    if print_package:
        click.echo(package_folder())
        return
    joins = (Path(folder) / PROJECT_FILE).is_file()
    left = initialise(Path(folder), click.echo)
    if not joins:
        install_packages(Path(folder))
    for line in left:
        click.echo(f"by hand: {line}")
    steps = ["dbt deps"] if joins else []
    steps += ["exactly-once land FILE", "dbt build"]
    where = "" if folder == "." else f"cd {shlex.quote(folder)}; "
    click.echo(f"next: {where}{'; '.join(steps)}")
