"""Draws a document's life in docs/lifecycle.md from the seed status_transitions."""

from __future__ import annotations

import csv
from pathlib import Path

SEED = Path("seeds/status_transitions.csv")
PICTURE = Path("docs/lifecycle.md")

INTRODUCTION = """\
# The life of a document

Made from `seeds/status_transitions.csv` by `make docs`; a test compares the two. The view
`document_lifecycle` shows the states of each document, with times and causes, in the order in
which runs have observed them. The test `every_step_of_a_document_is_an_allowed_one` holds each step
that a run adds against the seed before the run is published, and the audit
`every_step_in_all_runs_is_an_allowed_one` all of them.
"""


def lifecycle_page(project_folder: Path) -> str:
    """The page: the picture in mermaid, and every step in a table."""
    with (project_folder / SEED).open(encoding="utf-8", newline="") as file:
        steps = list(csv.DictReader(file))
    # a state without a next state is an end
    ends = sorted({s["to_state"] for s in steps} - {s["from_state"] for s in steps})
    arrows = [
        f"    {s['from_state'] or '[*]'} --> {s['to_state']}: {s['caused_by']}" for s in steps
    ]
    arrows += [f"    {state} --> [*]" for state in ends]
    rows = [
        f"| {s['from_state'] and '`' + s['from_state'] + '`'} | `{s['to_state']}` "
        f"| {s['caused_by']} | {s['meaning']} |"
        for s in steps
    ]
    lines = [
        INTRODUCTION,
        "```mermaid",
        "stateDiagram-v2",
        *arrows,
        "```",
        "",
        "| from | to | caused by | meaning |",
        "| --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the page."""
    folder = Path(__file__).parents[1]
    (folder / PICTURE).write_text(lifecycle_page(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
