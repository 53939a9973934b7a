"""Iceberg's own REST catalog server, its files in an S3 of the tests' own, on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqs_server import running_moto
from thrift_servers import free_port

POM = Path(__file__).with_name("rest_catalog_pom.xml")
SERVER = "org.apache.iceberg.rest.RESTCatalogServer"
BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True)
class RestCatalog:
    """A server that runs."""

    uri: str
    s3: str

    @property
    def environment(self) -> dict[str, str]:
        """What leads the target `rest` to it."""
        return {**KEYS, "EXACTLY_ONCE_CATALOG": self.uri, "AWS_ENDPOINT_URL_S3": self.s3}


def server_classpath(folder: Path) -> str | None:
    """The jars of the server; None where Maven, or what it fetches, is not there."""
    maven = shutil.which("mvn")
    if maven is None:
        return None
    file = folder / "classpath.txt"
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    command = [maven, "-q", "-B", "-f", str(POM), goal, f"-Dmdep.outputFile={file}"]
    found = subprocess.run(command, capture_output=True, check=False)
    return file.read_text().strip() if found.returncode == 0 else None


@contextmanager
def running_rest_catalog(classpath: str, folder: Path) -> Iterator[RestCatalog]:
    """Start a catalog without a table."""
    import boto3

    with running_moto() as s3:
        keys = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests"}
        client = boto3.client("s3", endpoint_url=s3, region_name=KEYS["AWS_REGION"], **keys)
        client.create_bucket(Bucket=BUCKET)
        port = free_port()
        catalog = RestCatalog(f"http://127.0.0.1:{port}", s3)
        settings = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
            "jdbc.schema-version": "V1",
            "warehouse": f"s3://{BUCKET}/warehouse",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.path-style-access": "true",
            "rest.port": str(port),
        }
        # as the server reads them from its environment
        named = {
            f"CATALOG_{name.upper().replace('-', '__').replace('.', '_')}": value
            for name, value in settings.items()
        }
        server = subprocess.Popen(
            ["java", "-Xmx512m", "-cp", classpath, SERVER],
            env={**os.environ, **catalog.environment, **named},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(catalog.uri, server)
            yield catalog
        finally:
            server.kill()
            server.wait()


def _wait_for(uri: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(f"{uri}/v1/config", timeout=5).close()
        except OSError:
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.2)
        else:
            return
