"""The outcome of one landing: counts, first reasons, exit status."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_exactly_once.landing.judging import REPEATED


@dataclass
class Landing:
    """The outcome of one landing."""

    table: str
    landed: int = 0
    # rows that did not land, by reason; REPEATED ones are not counted as rejected
    reasons: dict[str, int] = field(default_factory=dict)
    # for the first rejected rows: their file and line, and what is wrong with them
    examples: list[str] = field(default_factory=list)
    # a query for all rejected and repeated rows
    rows_behind: str = ""

    @property
    def repeated(self) -> int:
        return self.reasons.get(REPEATED, 0)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values()) - self.repeated

    @property
    def failed(self) -> bool:
        """Whether rows were rejected and none has landed."""
        return self.rejected > 0 and not self.landed

    def lines(self) -> list[str]:
        """The lines to print: the counts, why rows were rejected, and where these are."""
        if not self.rejected:
            return [str(self)]
        more = self.rejected - len(self.examples)
        return [
            str(self),
            *(f"  {example}" for example in self.examples),
            *([f"  and {more:,} more"] if more else []),
            f'they are kept; to see them: dbt show --limit -1 --inline "{self.rows_behind}"',
        ]

    def __str__(self) -> str:
        why = ", ".join(f"{k} {v}" for k, v in sorted(self.reasons.items()) if k != REPEATED)
        rejected = f"rejected {self.rejected}" + (f" ({why})" if why else "")
        return f"{self.table}: landed {self.landed}, {rejected}, repeated {self.repeated}"
