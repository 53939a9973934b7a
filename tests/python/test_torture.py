"""The short form of `make torture`: some kills, a takeover, a pair of runs, nothing lost."""

from __future__ import annotations

from pathlib import Path

from torture import DECIDE, LAND, Moment, torture


def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    moments = [
        Moment(DECIDE, stage="branch writes", number=3),
        Moment(DECIDE, stage="tests"),
        Moment(DECIDE, stage="publication", number=2),
        Moment(LAND, stage="landing"),
    ]
    score = torture(tmp_path / "torture", moments, pairs=1, takeovers=1, seed=5, rows=300)
    said = score.lines()
    assert score.missed == [], said
    assert sum(score.kills_by_stage.values()) == 4, said
    assert {"publication", "landing"} <= set(score.kills_by_stage), said
    assert score.deliveries > 300, said
    assert (score.lost, score.doubled, score.different) == (0, 0, 0), said
    assert (score.takeovers, score.takeovers_wrong) == (1, []), said
    assert score.pairs_wrong == [], said
