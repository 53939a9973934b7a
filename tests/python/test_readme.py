"""The README says of each trigger setting what the project does."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT_FOLDER = Path(__file__).parents[2]
DEFAULTS = PROJECT_FOLDER / "macros/seeds/trigger_defaults.sql"


def test_the_readme_gives_every_trigger_setting_its_default() -> None:
    readme = (PROJECT_FOLDER / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Settings of a trigger")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (?:`(\w+)` )?\|", section, re.MULTILINE))
    written = re.findall(
        r"^\s+'(\w+)': \('\w+', (?:'(\w+)'|none)\)",
        DEFAULTS.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    # of the two that name a function, `none` is what a blank stands for
    functions = {"resolver": "none", "resource_monitor": "none"}
    assert told == {"trigger_name": "", **dict(written), **functions}
