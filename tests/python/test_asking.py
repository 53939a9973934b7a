"""How resolvers are asked: in order, within a limit, and what their answers mean."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dbt_exactly_once.resolvers.hooks import OWN_FOLDER, load_hooks

load_hooks(OWN_FOLDER.parent)

from python_udfs import (  # noqa: E402 (found by load_hooks)
    Delivery,
    RegistrationError,
    TransientError,
    _asking,
    _hooks,
    once_per_worker,
)

RECEIVED_AT = datetime(2024, 3, 1, 10, 0, tzinfo=timezone.utc)


def delivery(**values: Any) -> Delivery:
    given = dict.fromkeys(_asking.ATTRIBUTES) | {
        "document_type_name": "orders:placed",
        "transport": "BROKER",
        "trigger_name": "orders",
        "received_at": RECEIVED_AT,
    }
    return Delivery(**{**given, **values})


def candidate(
    delivery_id: str, *, ends_on_new: bool = True, ends_on_transient_error: bool = True
) -> dict[str, Any]:
    return {
        "delivery_id": delivery_id,
        "ends_on_new": ends_on_new,
        "ends_on_transient_error": ends_on_transient_error,
        **vars(delivery(uuid=delivery_id)),
    }


def as_array(chains: list[list[dict[str, Any]]]) -> pa.Array:
    types = {
        "ends_on_new": pa.bool_(),
        "ends_on_transient_error": pa.bool_(),
        "redelivery_count": pa.int32(),
        "received_at": pa.timestamp("us", "UTC"),
    }
    names = list(candidate(""))
    struct = pa.struct([(name, types.get(name, pa.string())) for name in names])
    return pa.array(chains, pa.list_(struct))


def ask(
    function: Callable[[Any], Any],
    chains: list[list[dict[str, Any]]],
    table: str | None = None,
    limit_ms: int = 30_000,
    trace_folder: str = "/nowhere",
) -> list[list[tuple[str, str | None]]]:
    """The answers as Spark gets them, by chain."""

    def load(name: str) -> None:
        _hooks.registry.add(_hooks.Hook("resolver", name, function, table))

    who = [pa.array([value] * len(chains)) for value in ("tests.check", "orders", limit_ms)]
    batch = (*who, as_array(chains))
    try:
        (answered,) = _asking.answer_chains(iter([batch]), trace_folder, load)
    finally:
        _hooks.registry._hooks.pop(("resolver", "tests.check"), None)
    for chain, answers in zip(chains, answered.to_pylist(), strict=True):
        ids = [answer["delivery_id"] for answer in answers]
        assert ids == [asked["delivery_id"] for asked in chain[: len(ids)]]
    return [[(a["resolver_result"], a["message"]) for a in chain] for chain in answered.to_pylist()]


def results(answers: list[list[Any]]) -> list[list[str]]:
    return [[result for result, _ in chain] for chain in answers]


@pytest.mark.parametrize(
    ("answer", "judged"),
    [
        ("NEW", ("NEW", None)),
        (("DUPLICATE", "seen at noon"), ("DUPLICATE", "seen at noon")),
        (("IN_DOUBT", None), ("IN_DOUBT", None)),
        (("NEW", "m" * 1000), ("NEW", "m" * 1000)),
        ("new", ("INVALID", "answered 'new', not one of NEW, DUPLICATE, IN_DOUBT")),
        (None, ("INVALID", "answered None, not one of NEW, DUPLICATE, IN_DOUBT")),
        (7, ("INVALID", "answered 7, not one of NEW, DUPLICATE, IN_DOUBT")),
        (
            ("NEW", "a", "b"),
            ("INVALID", "answered ('NEW', 'a', 'b'), not one of NEW, DUPLICATE, IN_DOUBT"),
        ),
        (
            ("NEW", 5),
            ("INVALID", "answered NEW with the message 5, which is no text"),
        ),
    ],
)
def test_an_answer_is_one_of_three_words_with_a_message_or_invalid(
    answer: Any, judged: tuple[str, str | None]
) -> None:
    assert _asking.judge(answer) == judged


def test_a_message_that_is_too_long_makes_an_answer_invalid_and_is_cut() -> None:
    result, message = _asking.judge(("NEW", "m" * 1001))
    assert result == "INVALID"
    assert message is not None
    assert len(message) == 1000
    assert message.startswith("answered NEW with a message of 1001 characters")


def test_an_error_keeps_its_type_and_text() -> None:
    assert _asking.failed(TransientError("down")) == ("TRANSIENT_ERROR", "TransientError: down")
    assert _asking.failed(KeyError("number")) == ("ERROR", "KeyError: 'number'")
    assert _asking.failed(ValueError()) == ("ERROR", "ValueError")
    assert len(_asking.failed(ValueError("x" * 5000))[1] or "") == 1000


def test_a_chain_is_asked_in_order_up_to_new() -> None:
    asked = []

    def function(delivery: Delivery) -> str:
        asked.append(delivery.uuid)
        return "NEW" if delivery.uuid == "a2" else "DUPLICATE"

    chains = [
        [candidate("first")],
        [candidate("a1"), candidate("a2"), candidate("a3")],
        [candidate("b1")],
        [],
    ]
    answers = ask(function, chains)
    assert results(answers) == [["DUPLICATE"], ["DUPLICATE", "NEW"], ["DUPLICATE"], []]
    assert asked == ["first", "a1", "b1", "a2"]


def test_new_without_a_condition_does_not_end_a_chain() -> None:
    chain = [candidate("a1", ends_on_new=False), candidate("a2")]
    assert results(ask(lambda _: "NEW", [chain])) == [["NEW", "NEW"]]


def test_a_transient_error_ends_a_chain_where_it_suspends() -> None:
    def function(_: Delivery) -> str:
        raise TransientError("down")

    suspending = [candidate("a1"), candidate("a2")]
    other = [candidate("b1", ends_on_transient_error=False), candidate("b2")]
    assert results(ask(function, [suspending, other])) == [
        ["TRANSIENT_ERROR"],
        ["TRANSIENT_ERROR", "TRANSIENT_ERROR"],
    ]


def test_leaving_the_interpreter_is_an_error_like_any_other() -> None:
    answers = ask(lambda _: sys.exit(3), [[candidate("a1")], [candidate("b1")]])
    assert results(answers) == [["ERROR"], ["ERROR"]]


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_a_table_has_the_kth_candidate_of_each_chain_in_round_k(library: str) -> None:
    rounds = []

    def function(deliveries: Any) -> Any:
        uuids = list(deliveries["uuid"] if library == "pandas" else deliveries["uuid"].to_pylist())
        rounds.append(uuids)
        answers = {"status": ["NEW" if u == "a1" else "IN_DOUBT" for u in uuids]}
        return pd.DataFrame(answers) if library == "pandas" else pa.table(answers)

    chains = [[candidate("a1"), candidate("a2")], [candidate("b1"), candidate("b2")]]
    answers = ask(function, chains, library)
    assert rounds == [["a1", "b1"], ["b2"]]
    assert results(answers) == [["NEW"], ["IN_DOUBT", "IN_DOUBT"]]


def test_a_table_has_a_typed_column_for_each_attribute() -> None:
    seen = []

    def function(deliveries: pa.Table) -> pa.Table:
        seen.append(deliveries)
        return pa.table({"status": ["NEW"], "message": ["why"]})

    assert ask(function, [[candidate("a1")]], "pyarrow") == [[("NEW", "why")]]
    types = {column.name: column.type for column in seen[0].schema}
    assert list(types) == list(_asking.ATTRIBUTES)
    assert types["received_at"] == pa.timestamp("us", "UTC")
    assert types["redelivery_count"] == pa.int32()


@pytest.mark.parametrize(
    "answered",
    [
        pa.table({"status": ["NEW"]}),
        pa.table({"answer": ["NEW", "NEW"]}),
        ["NEW", "NEW"],
        None,
        pd.DataFrame({"status": ["NEW"]}),
    ],
)
def test_a_table_of_another_shape_is_invalid_for_every_row(answered: Any) -> None:
    chains = [[candidate("a1")], [candidate("b1")]]
    answers = ask(lambda _: answered, chains, "pyarrow")
    assert results(answers) == [["INVALID"], ["INVALID"]]


def test_a_missing_status_in_a_table_is_invalid_and_a_missing_message_is_none() -> None:
    table = pd.DataFrame({"status": ["NEW", None], "message": [None, "why"]})
    answers = ask(lambda _: table, [[candidate("a1")], [candidate("b1")]], "pandas")
    assert answers[0] == [("NEW", None)]
    assert results(answers)[1] == ["INVALID"]


def test_a_status_that_is_no_text_is_invalid_for_its_row_alone() -> None:
    table = pd.DataFrame({"status": ["NEW", ["NEW"]]})
    answers = ask(lambda _: table, [[candidate("a1")], [candidate("b1")]], "pandas")
    assert results(answers) == [["NEW"], ["INVALID"]]


def test_a_call_over_its_limit_is_a_transient_error_and_the_next_is_made() -> None:
    release = threading.Event()

    def function(delivery: Delivery) -> str:
        if delivery.uuid == "b1":
            release.wait(60)
        return "NEW"

    answers = ask(function, [[candidate(n)] for n in ("a1", "b1", "c1")], limit_ms=200)
    release.set()
    assert results(answers) == [["NEW"], ["TRANSIENT_ERROR"], ["NEW"]]
    assert answers[1][0][1] == "TimeoutError: no answer within 0.2 s"


def test_three_limits_in_a_row_end_the_asking() -> None:
    release = threading.Event()
    asked = []

    def function(delivery: Delivery) -> str:
        asked.append(delivery.uuid)
        release.wait(60)
        return "NEW"

    names = [f"d{number}" for number in range(6)]
    answers = ask(function, [[candidate(name)] for name in names], limit_ms=100)
    release.set()
    assert results(answers) == [["TRANSIENT_ERROR"]] * 3 + [["NOT_ASKED"]] * 3
    assert asked == names[:3]


def test_other_transient_errors_in_a_row_do_not_end_the_asking() -> None:
    def function(_: Delivery) -> str:
        raise TransientError("down")

    chains = [[candidate(f"d{number}")] for number in range(6)]
    assert results(ask(function, chains)) == [["TRANSIENT_ERROR"]] * 6


def test_what_is_asked_stands_in_a_file_while_it_is_asked(tmp_path: Path) -> None:
    seen = []

    def read() -> bytes:
        (path,) = tmp_path.iterdir()
        return path.read_bytes().split(b"\0")[0]

    ask(lambda _: seen.append(read()) or "NEW", [[candidate("a1")]], trace_folder=str(tmp_path))
    assert seen == [b"orders\ntests.check\na1"]
    assert read() == b""


def test_a_call_that_was_left_behind_hides_nothing_when_it_ends(tmp_path: Path) -> None:
    """Its thread answers while the next call is at work."""
    release = threading.Event()
    late: list[threading.Thread] = []
    seen = []

    def function(delivery: Delivery) -> str:
        if delivery.uuid == "a1":
            late.append(threading.current_thread())
            release.wait(60)
        else:
            release.set()
            late[0].join(60)
            (path,) = tmp_path.iterdir()
            seen.append(path.read_bytes().split(b"\0")[0])
        return "NEW"

    chains = [[candidate("a1")], [candidate("b1")]]
    answers = ask(function, chains, limit_ms=2_000, trace_folder=str(tmp_path))
    assert results(answers) == [["TRANSIENT_ERROR"], ["NEW"]]
    assert seen == [b"orders\ntests.check\nb1"]


def test_something_is_made_once_per_worker_and_closed_after_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_asking, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(_asking, "_caller", None)
    closed = threading.Event()
    made = []

    @once_per_worker
    def connection() -> Iterator[int]:
        made.append(threading.current_thread().name)
        yield len(made)
        closed.set()

    chains = [[candidate("a1")], [candidate("b1")]]
    answers = ask(lambda _: ("NEW", str(connection())), chains)
    assert answers == [[("NEW", "1")], [("NEW", "1")]]
    assert made == ["resolver"]
    assert closed.wait(30)


def test_what_was_forgotten_is_closed_and_made_anew() -> None:
    log = []

    @once_per_worker
    def connection() -> Iterator[int]:
        log.append("made")
        yield len(log)
        log.append("closed")

    assert connection() == connection() == 1
    connection.forget()
    assert connection() == 3
    connection.forget()
    connection.forget()
    assert log == ["made", "closed", "made", "closed"]


def test_the_document_is_parsed_where_it_is_json() -> None:
    assert delivery(document='{"number": 5}').document_json == {"number": 5}
    for text in (None, "", "{", "[" * 100_000):
        assert delivery(document=text).document_json is None


def test_a_table_resolver_is_known_by_the_annotation_of_its_argument() -> None:
    assert _hooks._table_of("pd.DataFrame") == _hooks._table_of(pd.DataFrame) == "pandas"
    assert _hooks._table_of("pa.Table") == _hooks._table_of(pa.Table) == "pyarrow"
    for other in ("Delivery", Delivery, "list[pd.DataFrame]", str | None, None):
        assert _hooks._table_of(other) is None


def test_something_made_once_needs_a_function_that_yields() -> None:
    with pytest.raises(RegistrationError, match="must be a function without arguments that yields"):
        once_per_worker(lambda: 5)  # type: ignore[arg-type]


class WithoutTextError(Exception):
    """An error whose text fails, and whose representation does."""

    def __str__(self) -> str:
        raise AttributeError("code")

    __repr__ = __str__


def raising(error: BaseException) -> Callable[[Any], Any]:
    def function(_: Any) -> Any:
        raise error

    return function


def test_an_error_without_a_text_is_an_error_by_its_type() -> None:
    assert ask(raising(WithoutTextError()), [[candidate("a")]]) == [[("ERROR", "WithoutTextError")]]
    assert ask(lambda _: WithoutTextError(), [[candidate("a")]]) == [
        [("ERROR", "AttributeError: code")]
    ]


def test_half_a_character_in_a_message_is_a_question_mark() -> None:
    answered = ask(lambda _: ("NEW", "order \ud800"), [[candidate("a")]])
    assert answered == [[("NEW", "order ?")]]
    error = ValueError("order \ud800")
    assert ask(raising(error), [[candidate("a")]]) == [[("ERROR", "ValueError: order ?")]]


@pytest.mark.parametrize(
    ("document", "parsed"),
    [('{"number": 1}', {"number": 1}), ('\ufeff{"number": 1}', {"number": 1}), ("no", None)],
)
def test_a_resolver_gets_the_document_as_json(document: str, parsed: object) -> None:
    assert delivery(document=document).document_json == parsed


def test_a_monitor_without_an_answer_is_a_no_with_the_reason() -> None:
    def load(name: str) -> None:
        answers = {"odd": lambda: WithoutTextError(), "half": lambda: "\ud800"}
        _hooks.registry.add(_hooks.Hook("resource_monitor", name, answers[name]))

    try:
        [found] = _asking.availabilities(iter([pa.array(["odd", "half"])]), load)
    finally:
        for name in ("odd", "half"):
            _hooks.registry._hooks.pop(("resource_monitor", name), None)
    assert found.to_pylist() == [
        {"is_available": False, "message": "AttributeError: code"},
        {"is_available": False, "message": "answered '\\ud800', not True or False"},
    ]
