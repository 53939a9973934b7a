"""Optional dependencies: a missing one is reported in one line before Spark starts."""

from __future__ import annotations

from importlib import import_module

from dbt_exactly_once.errors import ExactlyOnceError

DISTRIBUTION = "dbt-exactly-once"
# for each extra: the module to import, the package that has it, and what it is for
EXTRAS = {
    "rabbitmq": ("pika", "pika", "to talk to RabbitMQ"),
    "amqp": ("proton", "python-qpid-proton", "to talk over AMQP 1.0"),
    "kafka": ("confluent_kafka", "confluent-kafka", "to talk to Kafka"),
    "sqs": ("boto3", "boto3", "to talk to SQS"),
    "report": ("matplotlib", "matplotlib", "to draw the charts of the report"),
}


def require_extra(extra: str) -> None:
    """Stop with one line if the package of an extra cannot be imported."""
    module, package, purpose = EXTRAS[extra]
    try:
        import_module(module)
    except ImportError as error:
        raise ExactlyOnceError(
            f"{package} is needed {purpose}: pip install '{DISTRIBUTION}[{extra}]'"
        ) from error
