"""The short form of `make torture`: some kills, a takeover, a pair of runs, nothing lost."""

from __future__ import annotations

from pathlib import Path

from torture import torture


def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    score = torture(
        tmp_path / "torture",
        kills=4,
        pairs=1,
        takeovers=1,
        boundaries=False,
        seed=5,
        pieces=2,
        rows=300,
    )
    said = score.lines()
    assert score.kills >= 3, said
    assert score.deliveries > 300, said
    assert (score.lost, score.doubled, score.different) == (0, 0, 0), said
    assert (score.takeovers, score.takeovers_wrong) == (1, []), said
    assert score.pairs_wrong == [], said
