"""The dbt plugin: dbt finds it in every command and lets it prepare itself."""

from __future__ import annotations

from dbt.flags import get_flags
from dbt.plugins.manager import dbtPlugin

from dbt_exactly_once.adapter.session import has_package
from dbt_exactly_once.patches import apply_patches, take_patches_back


class ExactlyOncePlugin(dbtPlugin):
    """Adds `adapter.exactly_once` to the Spark adapter, in a project that has this package."""

    def initialize(self) -> None:
        """Decide for this command; another one may follow in the same process."""
        if has_package(get_flags().PROJECT_DIR):
            apply_patches()
        else:
            take_patches_back()
