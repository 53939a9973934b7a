"""Services that are functions of python_udfs: which there are, and whether work waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.resolvers.hooks import Hooks


def lists_work(engine: Engine, schema: str) -> bool:
    """Whether a build has made the view of what is to be done."""
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
