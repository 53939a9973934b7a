"""The dbt plugin, which dbt finds and initializes in every command."""

from __future__ import annotations

from dbt.flags import get_flags
from dbt.plugins.manager import dbtPlugin

from dbt_exactly_once.adapter.session import has_package
from dbt_exactly_once.patches import apply_patches, take_patches_back


class ExactlyOncePlugin(dbtPlugin):
    """Adds `adapter.exactly_once` to the Spark adapter, in a project that has this package."""

    def initialize(self) -> None:
        """Apply or undo the patches for this command; the next one in the process may differ."""
        if has_package(get_flags().PROJECT_DIR):
            apply_patches()
        else:
            take_patches_back()
