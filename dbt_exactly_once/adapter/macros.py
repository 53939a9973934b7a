"""Macros of this package that Python calls as well, rendered without dbt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2


def macro_result(package_folder: Path, file: str, name: str, **arguments: Any) -> Any:
    """What a macro returns, or its text if it returns nothing.

    file: its path below macros/, without suffix. Of dbt's functions its macros may use only
    `return`.
    """
    text = (package_folder / "macros" / f"{file}.sql").read_text(encoding="utf-8")
    call = f"{{{{ {name}({', '.join(f'{key}={key}' for key in arguments)}) }}}}"
    returned: list[Any] = []
    template = jinja2.Environment(extensions=["jinja2.ext.do"]).from_string(text + call)
    rendered = template.render({"return": returned.append, **arguments})
    return returned[0] if returned else rendered.strip()
