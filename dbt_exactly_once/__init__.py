"""The Python side of Exactly Once.

dbt imports every top-level module named `dbt_*` and calls the plugins it lists, in every command.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """`plugins`, when dbt asks for it: what a plugin imports of dbt takes a second."""
    if name != "plugins":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from dbt_exactly_once.plugin import ExactlyOncePlugin

    return [ExactlyOncePlugin]
