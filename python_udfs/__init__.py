"""Your resolvers and services: drop a module into this folder and name its functions in the seeds
triggers (resolver, resource_monitor) and trigger_conditions (service).

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
from python_udfs._services import Work, service

__all__ = [
    "Delivery",
    "RegistrationError",
    "TransientError",
    "Work",
    "once_per_worker",
    "resolver",
    "resource_monitor",
    "service",
]
