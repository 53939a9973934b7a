"""Jars of Maven Central, for the servers that the tests start."""

from __future__ import annotations

import subprocess
import sys

# Spark resolves packages from there; in a process of its own, since its jars stay loaded
FIND_JARS = """
import sys
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.jars.packages": sys.argv[1]}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
print(spark.conf.get("spark.jars"))
"""


def jars_of(packages: str) -> list[str]:
    """The jars of some packages and of what they need; none where they cannot be fetched."""
    found = subprocess.run(
        [sys.executable, "-c", FIND_JARS, packages], capture_output=True, text=True, check=False
    )
    jars = found.stdout.strip().splitlines()[-1:] if found.returncode == 0 else []
    return [jar.removeprefix("file://") for line in jars for jar in line.split(",")]
