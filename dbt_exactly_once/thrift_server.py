"""A Thrift server that serves the lake to dbt (`method: thrift`) and to tools that speak JDBC.

All connections of dbt share one session: resolvers are functions of a session, and the branch that
a run writes to is a setting of it. Readers use a server of their own, which gives each of them a
session, and where no run's branch is ever set.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.lake_version import check_lake
from dbt_exactly_once.adapter.session import Project, open_session
from dbt_exactly_once.adapter.shared_session import HOOKS_SETTING, SHARING_SETTING
from dbt_exactly_once.adapter.startup import CLASS_PATH, PACKAGES
from dbt_exactly_once.errors import MORE_MEMORY, ExactlyOnceError
from dbt_exactly_once.process import stopped_by_signals
from dbt_exactly_once.resolvers.hooks import load_hooks, register_hooks

if TYPE_CHECKING:
    from dbt.adapters.spark.connections import SparkCredentials
    from pyspark.sql import SparkSession

# how often the server checks that Spark's process is alive
LOOK_SECONDS = 5.0
AUTHENTICATION = "spark.hadoop.hive.server2.authentication"


def serve(
    project: Project,
    credentials: SparkCredentials,
    schema: str,
    host: str,
    port: int,
    readers: bool = False,
) -> None:
    """Serve until the process is asked to stop; schema: that of the ledgers."""
    parameters = credentials.server_side_parameters
    hooks = None if readers else load_hooks(project.folder)
    parameters |= {
        "spark.app.name": f"exactly-once thrift-server{' --readers' if readers else ''}",
        SHARING_SETTING: "false" if readers else "true",
        "spark.hadoop.hive.server2.transport.mode": "binary",
        "spark.hadoop.hive.server2.thrift.bind.host": host,
        "spark.hadoop.hive.server2.thrift.port": str(port),
    }
    spark = _with_jars_on_class_path(credentials, project.spark_log)
    check_lake(spark, schema)
    if hooks is not None:
        register_hooks(hooks, spark)
        spark.conf.set(HOOKS_SETTING, hooks.content)
    # clients begin with `use default`
    spark.sql("create namespace if not exists default")
    server = spark._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    started = server.startWithContext(spark._jsparkSession.sqlContext())
    # replaces the signal handler that Spark has set
    with stopped_by_signals() as stop:
        whom = "readers, a session each" if readers else "dbt, one session for all"
        print(f"listening on {host}:{port} for {whom}; Ctrl-C ends it", flush=True)
        _wait_for_end(stop, spark.sparkContext._gateway.proc)
        started.stop()
        spark.stop()


def _wait_for_end(stop: threading.Event, java: subprocess.Popen[bytes]) -> None:
    """Wait until the process is asked to stop; raises if Spark's Java has ended."""
    while not stop.wait(LOOK_SECONDS):
        if java.poll() is not None:
            raise ExactlyOnceError(
                "Spark is gone: its process was killed or had no memory left; start the server "
                f"again (out of memory: {MORE_MEMORY})"
            )


def check_address(credentials: SparkCredentials, host: str, port: int, open_to_all: bool) -> None:
    """Refuse, before Spark starts, an address that is taken or that lets everybody in."""
    authentication = credentials.server_side_parameters.get(AUTHENTICATION, "NONE")
    try:
        address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        is_loopback = ipaddress.ip_address(address[4][0]).is_loopback
        with socket.socket(address[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address[4])
    except (socket.gaierror, UnicodeError) as error:
        raise ExactlyOnceError(
            f"no machine is known as {host}: name an address of this one with --host"
        ) from error
    except OSError as error:
        raise ExactlyOnceError(
            f"{host}:{port} cannot be listened on ({error.strerror}): name a free port with "
            "--port, or an address of this machine with --host"
        ) from error
    if not (is_loopback or open_to_all) and authentication.upper() in ("NONE", "NOSASL"):
        raise ExactlyOnceError(
            f"{host} can be reached from other machines, and whoever reaches it can read and write "
            f"the lake: set {AUTHENTICATION} in profiles.yml, see docs/warehouse.md, or say "
            "--without-authentication if the network keeps others out"
        )


def _with_jars_on_class_path(credentials: SparkCredentials, log: Path) -> SparkSession:
    """Open the session with its jars on Java's class path.

    If jars are added to a running Java, only the first connection finds their classes. So if the
    jars are not known yet, Spark first resolves the packages, and is then started again with them.
    """
    parameters = credentials.server_side_parameters
    spark = open_session(credentials, log)
    listed = filter(None, spark.conf.get("spark.jars", "").split(","))
    jars = [jar.removeprefix("file://").removeprefix("file:") for jar in listed]
    class_path = spark.conf.get(CLASS_PATH, "").split(":")
    if set(jars) <= set(class_path):
        return spark
    _close_java(spark)
    parameters.pop(PACKAGES, None)
    parameters[CLASS_PATH] = ":".join([*jars, *filter(None, class_path)])
    # executors on other machines fetch the jars from this process
    parameters["spark.jars"] = ",".join(jars)
    return open_session(credentials, log)


def _close_java(spark: SparkSession) -> None:
    """End the session and its Java: the class path is fixed when Java starts."""
    from pyspark import SparkContext

    spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None
