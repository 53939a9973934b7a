"""Services that are functions of python_udfs: which there are, and the worker that calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.resolvers.hooks import Hooks
from dbt_exactly_once.services.executions import Executions
from dbt_exactly_once.services.worker import Worker


def lists_work(engine: Engine, schema: str) -> bool:
    """Whether a build has made the view dispatched_documents, which lists what is to be done."""
    return bool(engine.rows(f"show views in {schema} like 'dispatched_documents'"))


def choose_services(hooks: Hooks, wanted: Iterable[str] = ()) -> dict[str, Callable[[Any], Any]]:
    """The services to work for: all that python_udfs registers, or those that are named."""
    registered = {name: hooks.get("service", name).function for name in hooks.names("service")}
    if not registered:
        raise ExactlyOnceError(
            "no module of python_udfs registers a service: decorate a function with "
            "@service('its.name') (from python_udfs import service)"
        )
    names = list(wanted or registered)
    unknown = [name for name in names if name not in registered]
    if unknown:
        raise ExactlyOnceError(
            f"no module of python_udfs registers the service {', '.join(unknown)}; known are "
            f"{', '.join(sorted(registered))}"
        )
    return {name: registered[name] for name in names}


def worker_of(
    engine: Engine,
    schema: str,
    trigger_executions: str,
    hooks: Hooks,
    wanted: Iterable[str] = (),
    **options: Any,
) -> Worker:
    """A worker for services of python_udfs, all or those that are named.

    schema: of the views; trigger_executions: the landed table; options: see Worker.
    """
    return Worker(
        engine,
        schema,
        Executions(engine, trigger_executions),
        choose_services(hooks, wanted),
        hooks.package.Work,
        hooks.package.TransientError,
        **options,
    )
