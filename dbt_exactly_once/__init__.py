"""The Python side of Exactly Once.

dbt imports every top-level module named `dbt_*` and calls the plugins it lists, in every command.
"""

from dbt_exactly_once.plugin import ExactlyOncePlugin

plugins = [ExactlyOncePlugin]
