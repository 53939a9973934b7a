"""A standalone Spark cluster of the tests' own, on loopback: a master and workers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from thrift_servers import free_port

WAIT_SECONDS = 180


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start the cluster; its address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = ["master.Master", "--port", str(port)]
        stack.enter_context(_daemon(folder / "master.log", master))
        _wait_for(folder / "master.log", "Starting Spark master")
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            place = ["--work-dir", str(folder / f"work-{number}")]
            size = ["--cores", "1", "--memory", "1g"]
            stack.enter_context(_daemon(log, ["worker.Worker", *size, *place, address]))
        for number in range(workers):
            _wait_for(folder / f"worker-{number}.log", "Successfully registered with master")
        yield address


@contextmanager
def _daemon(log: Path, command: list[str]) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    name, *options = command
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *place, *options],
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=output,
            stderr=output,
            cwd=log.parent,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
