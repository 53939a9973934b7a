"""An ActiveMQ Artemis broker of the tests' own, on loopback: a JMS provider with AMQP 1.0."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.java_gateway import JavaGateway, launch_gateway
from thrift_servers import free_port

PACKAGES = (
    "org.apache.activemq:artemis-server:2.42.0,org.apache.activemq:artemis-amqp-protocol:2.42.0"
)


@dataclass
class ArtemisBroker:
    """A broker that runs."""

    url: str
    gateway: JavaGateway
    server: object

    def messages(self, queue: str) -> int:
        """How many messages the queue holds, delivered or not."""
        address = self.gateway.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(queue)
        return self.server.locateQueue(address).getMessageCount()


@contextmanager
def running_artemis(jars: list[str], folder: Path) -> Iterator[ArtemisBroker]:
    """Start a broker whose queues are made when they are named."""
    port = free_port()
    gateway_port, proc = launch_gateway(
        classpath=":".join(jars), die_on_exit=True, return_proc=True
    )
    gateway = JavaGateway(gateway_parameters=_parameters(gateway_port))
    try:
        artemis = gateway.jvm.org.apache.activemq.artemis.core
        configuration = artemis.config.impl.ConfigurationImpl()
        configuration.setPersistenceEnabled(False)
        configuration.setSecurityEnabled(False)
        configuration.setJournalDirectory(str(folder))
        anycast = gateway.jvm.org.apache.activemq.artemis.api.core.RoutingType.ANYCAST
        settings = artemis.settings.impl.AddressSettings()
        settings.setDefaultAddressRoutingType(anycast).setDefaultQueueRoutingType(anycast)
        # otherwise a queue that was emptied goes with its last consumer
        settings.setAutoDeleteQueues(False)
        configuration.addAddressSetting("#", settings)
        url = f"127.0.0.1:{port}"
        configuration.addAcceptorConfiguration("amqp", f"tcp://{url}?protocols=AMQP")
        server = artemis.server.embedded.EmbeddedActiveMQ()
        server.setConfiguration(configuration)
        server.start()
        yield ArtemisBroker(f"amqp://{url}", gateway, server.getActiveMQServer())
    finally:
        gateway.shutdown()
        proc.kill()
        proc.wait()


def _parameters(port: int) -> object:
    from py4j.java_gateway import GatewayParameters

    return GatewayParameters(port=port)
