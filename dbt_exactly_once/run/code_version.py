"""A checksum of the project's code, by which a view knows whether it was made of the same."""

from __future__ import annotations

import hashlib
from pathlib import Path


def code_version(folder: Path) -> str:
    """A checksum of the code of the project in a folder."""
    digest = hashlib.sha256((folder / "dbt_project.yml").read_bytes())
    for place in ("macros", "models"):
        for path in sorted((folder / place).rglob("*.*")):
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
