"""Files and folders that are landed repeatedly: each file once, and again when it changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbt_exactly_once.errors import ExactlyOnceError

# a file at one moment: the times of its content and of its name and rights, and its size
Look = tuple[int, int, int]


class Sources:
    """Files, and folders with files directly in them, and which of them this process has landed.

    Another process lands all of them once more, which changes nothing. Files whose names begin with
    a dot or an underscore are skipped: programs name files so while they write them.
    """

    def __init__(self, places: Sequence[str | Path]) -> None:
        # dbt may change the current folder
        self._places = [Path(place).absolute() for place in places]
        self._landed: dict[Path, Look] = {}
        for place in self._places:
            if not place.exists():
                raise ExactlyOnceError(f"{place} is not there: name files, or folders of files")

    def new_files(self) -> dict[Path, Look]:
        """The files that are new or have changed since they landed, in order of name per folder."""
        found: dict[Path, Look] = {}
        for place in self._places:
            for path in sorted(place.iterdir()) if place.is_dir() else [place]:
                look = _look_at(path)
                if look is not None:
                    found[path] = look
        # forget files that are gone
        self._landed = {path: look for path, look in self._landed.items() if path in found}
        return {path: look for path, look in found.items() if self._landed.get(path) != look}

    def settle(self, path: Path, look: Look) -> None:
        """Leave a file alone until it changes."""
        self._landed[path] = look


def _look_at(path: Path) -> Look | None:
    """None if it is not a file to land, or is gone."""
    try:
        if path.name.startswith((".", "_")) or not path.is_file():
            return None
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
