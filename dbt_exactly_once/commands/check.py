"""The command `check`."""

from __future__ import annotations

import click

from dbt_exactly_once.commands.place import Place, at_place


@click.command()
@at_place
def check(place: Place) -> int:
    """List what would stop a run, without Spark.

    It looks at Java and Python, what is installed, the profile and its catalog, python_udfs and the
    seeds. The exit status is 1 where something is wrong.
    """
    from dbt_exactly_once.check.findings import Kind
    from dbt_exactly_once.check.project import check_project

    findings = check_project(place.project, lambda: place.credentials)
    for finding in findings:
        click.echo(finding)
    return 1 if any(finding.kind is Kind.WRONG for finding in findings) else 0
