"""What a file holds, by its first bytes; for the message if its name says another format."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

JSON, CSV, PARQUET = "JSON", "CSV", "Parquet"
# what to name a file of a format that can be read
NAMES = {JSON: ".jsonl", CSV: ".csv", PARQUET: ".parquet"}
MAGIC = {
    b"PAR1": PARQUET,
    b"Obj\x01": "Avro",
    b"ORC": "ORC",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
DELIMITERS = (",", ";", "\t", "|")
# fewer columns in common may be chance
TELLING_COLUMNS = 2


@dataclass(frozen=True)
class Content:
    """What a file holds; for CSV also what separates its fields."""

    format: str
    delimiter: str = ","

    @property
    def remedy(self) -> str:
        """What to do with a file that holds it under a name of another format."""
        if self.format in NAMES:
            return f"name it {NAMES[self.format]}"
        return "write it as JSON lines, CSV or Parquet, in UTF-8"


def content_of(head: bytes, columns: Collection[str]) -> Content | None:
    """What a file with these first bytes holds; None if they are of no known format.

    columns: those of the target table; a line with two of them is taken for the header of a CSV.
    """
    for magic, held in MAGIC.items():
        if head.startswith(magic):
            return Content(held)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if text.startswith(("{", "[")):
        return Content(JSON)
    line = text.partition("\n")[0]
    for delimiter in DELIMITERS:
        names = {name.strip(' "\r') for name in line.split(delimiter)}
        if len(names & set(columns)) >= TELLING_COLUMNS:
            return Content(CSV, delimiter)
    return None


def other_delimiter(head: bytes) -> str | None:
    """The delimiter of a CSV header that has no comma."""
    line = head.decode("utf-8-sig", "replace").partition("\n")[0]
    if "," in line:
        return None
    delimiter = max(DELIMITERS, key=line.count)
    return delimiter if delimiter in line else None
