"""The line of a round of the loop, and how long the loop waits after it."""

from __future__ import annotations

from dataclasses import dataclass, field

# the pauses after rounds that fail grow up to so many seconds
LONGEST_PAUSE = 300.0
SHOWN_FAILURES = 3


@dataclass
class Round:
    """What a round reports."""

    messages: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def line(self, next_step: str) -> str:
        """All of it in one line; empty if nothing happened."""
        parts = [*self.messages]
        if self.failed:
            more = len(self.failed) - SHOWN_FAILURES
            failed = self.failed[:SHOWN_FAILURES] + ([f"and {more} more"] if more > 0 else [])
            parts += [f"failed: {'; '.join(failed)}", next_step]
        return " ".join("; ".join(parts).split())


def pause_after(every: float, failures: int) -> float:
    """Seconds from the start of a round to that of the next, after so many failures in a row."""
    if not failures:
        return every
    # 20 only bounds the power: the longest pause is reached long before
    return min(max(every, 1) * 2 ** min(failures, 20), max(every, LONGEST_PAUSE))
