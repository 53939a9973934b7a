"""Puts the dbt project into the wheel: what MANIFEST.in lists, as dbt_exactly_once/project."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent
PLACE = "dbt_exactly_once/project"
# what dbt, Spark and Python leave in a folder
MADE = shutil.ignore_patterns(
    "target", "logs", "dbt_packages", "package-lock.yml", ".lake", ".user.yml", "__pycache__"
)


class BuildWithProject(build_py):
    """Builds the Python packages, and copies the dbt project beside them."""

    def run(self) -> None:
        super().run()
        # an editable install has the project where it is
        if self.editable_mode:
            return
        place = Path(self.build_lib) / PLACE
        # an earlier build may have left files there that the project has no more
        shutil.rmtree(place, ignore_errors=True)
        for line in (SOURCE / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                _follow(*line.split(), place)


def _follow(command: str, part: str, place: Path) -> None:
    """One line of MANIFEST.in; a part that is missing is an error, not a smaller wheel."""
    (place / part).parent.mkdir(parents=True, exist_ok=True)
    if command == "include":
        shutil.copyfile(SOURCE / part, place / part)
    elif command == "graft":
        shutil.copytree(SOURCE / part, place / part, dirs_exist_ok=True, ignore=MADE)
    elif command == "prune":
        shutil.rmtree(place / part)
    else:
        raise SystemExit(f"MANIFEST.in: {command} is not followed by setup.py")


setup(cmdclass={"build_py": BuildWithProject})
