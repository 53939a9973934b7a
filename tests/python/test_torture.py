"""The short form of `make torture`: some kills and faults, takeovers, a pair of runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from moments import BEHIND, MOMENTS, Moment, random_moments
from torture import torture
from watched_lake import LAND


@pytest.mark.timeout(2400)
def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    """18: also where a publication fails, where upkeep is cut off and snapshots expire behind it,
    where the clock is wrong, and where a run is taken over while its service's insert is at work.
    """
    moments = [
        Moment(
            said="the publication of document_status fails",
            faults={"fast_forward": "document_status"},
            has_upkeep=True,
        ),
        Moment(stage="upkeep of a run", number=9, has_upkeep=True),
        Moment(stage="tests", faults={"expire": "before", "clock": BEHIND}),
        Moment(stage="branch writes", number=3, faults={"slow_insert": ""}),
        Moment(LAND, stage="landing"),
    ]
    score = torture(tmp_path / "torture", moments, pairs=1, takeovers=1, seed=5, rows=300)
    said = score.lines()
    assert score.missed == [], said
    assert sum(score.kills_by_stage.values()) == 5, said
    assert {"publication", "upkeep of a run", "branch writes"} < set(score.kills_by_stage), said
    assert {
        f"the clock is {BEHIND}",
        "the publication of document_status fails",
        "snapshots expired before",
        "the insert of the service is at work",
    } <= set(score.faults), said
    assert score.deliveries > 700, said
    assert score.effects > 500, said
    assert (score.lost, score.doubled, score.different) == (0, 0, 0), said
    assert (score.takeovers, score.takeovers_wrong) == (2, []), said
    assert score.pairs_wrong == [], said


def test_a_seed_tells_which_moments_come() -> None:
    moments, again, others = (list(random_moments(random.Random(n), 60)) for n in (7, 7, 8))
    assert {moment.kind for moment in moments} == {kind.__name__ for kind in MOMENTS}
    assert moments == again
    assert moments != others
