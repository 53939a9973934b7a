"""The picture of a document's life is that of the seed."""

from __future__ import annotations

from pathlib import Path

from dbt_exactly_once.lifecycle import PICTURE, lifecycle_page

PROJECT_FOLDER = Path(__file__).parents[2]


def test_the_picture_of_the_lifecycle_is_made_from_the_seed() -> None:
    written = (PROJECT_FOLDER / PICTURE).read_text(encoding="utf-8")
    assert written == lifecycle_page(PROJECT_FOLDER), "run `make docs`"
