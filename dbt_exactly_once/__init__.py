"""The Python side of Exactly Once.

dbt imports every top-level module named `dbt_*` and calls the plugins it lists, in every command.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import `plugins` only when dbt asks for it: the plugin's imports of dbt take a second."""
    if name != "plugins":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from dbt_exactly_once.plugin import ExactlyOncePlugin

    return [ExactlyOncePlugin]
