"""Your resolvers: drop a module into this folder and name its functions in seeds/triggers.csv.

This package imports neither dbt nor Spark, since every Spark worker imports it. Modules whose name
starts with an underscore are the package's own; all others are yours (or examples).
"""

from python_udfs._hooks import (
    Delivery,
    RegistrationError,
    TransientError,
    once_per_worker,
    resolver,
    resource_monitor,
)

__all__ = [
    "Delivery",
    "RegistrationError",
    "TransientError",
    "once_per_worker",
    "resolver",
    "resource_monitor",
]
