"""Filters of trigger conditions: Spark SQL in which `%order/total:double%` reads the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.errors import ExactlyOnceError, one_line

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`)"""
    r"""|%(?P<path>[^%\s:'"`]+)(?::(?P<type>[A-Za-z]+(?:\(\s*\d+\s*(?:,\s*\d+\s*)?\))?))?%""",
    re.DOTALL,
)
_FIELD = "\x00"
_COMPARES = r"(?:<=>|<=|>=|<>|!=|==|=|<|>|[-+*/])"
# a literal, or the column that is a number
_NUMBER = r"(?:[-+]?\s*\.?\d|\bredelivery_count\b)"
_UNTYPED_NUMBER = re.compile(
    rf"{_FIELD}\s*{_COMPARES}[\s(]*{_NUMBER}"
    rf"|(?:\b\d[\w.]*|\bredelivery_count)\s*{_COMPARES}[\s(]*{_FIELD}"
    rf"|{_FIELD}\s+(?:not\s+)?between\s+{_NUMBER}"
    rf"|{_FIELD}\s+(?:not\s+)?in\s*\(\s*{_NUMBER}",
    re.IGNORECASE,
)
# a field in parentheses that are not those of a function call
_IN_PARENTHESES = re.compile(
    rf"(^|[(<>=!+\-*/,]|\b(?:and|or|not|when|then|else|where|between))\s*\(\s*{_FIELD}\s*\)",
    re.IGNORECASE,
)
# functions of the clock, which Spark takes for constants of a query
_CLOCK = re.compile(
    r"\b(current_(?:timestamp|date|time)|localtimestamp|curdate|now|unix_timestamp(?=\s*\(\s*\)))\b",
    re.IGNORECASE,
)


def clock_in(text: str) -> str | None:
    """The function of the clock that a filter or a key calls; None if it calls none."""
    found = _CLOCK.search(_TOKEN.sub(_shape, text))
    return found[0] if found else None


def filter_sql(text: str) -> str:
    """The Spark SQL of a filter.

    `%a/b%` becomes the text of field b in object a of the document, `%a/b:type%` its value as that
    type; both are null if the document is not JSON or has no such field. Raises ExactlyOnceError
    if an untyped field is compared with a number, since Spark's two SQL modes compare text with
    numbers differently.
    """
    bare = _IN_PARENTHESES.sub(rf"\1 {_FIELD}", _TOKEN.sub(_shape, text))
    if _UNTYPED_NUMBER.search(bare):
        paths = [m["path"] for m in _TOKEN.finditer(text) if m["path"] and not m["type"]]
        raise ExactlyOnceError(
            f"the untyped field %{paths[0]}% is compared with a number: "
            f"give it a type, as in %{paths[0]}:double%"
        )
    return _TOKEN.sub(_read, text)


def expression_problem(engine: Engine, text: str, relation: str, is_filter: bool) -> str | None:
    """Why Spark cannot use a filter or a key over a relation's columns; None if it can."""
    try:
        expression = filter_sql(text)
        if is_filter:
            used = f"select 1 from {relation} where (\n{expression}\n) and false"
        else:
            # a key is a value of one row: no aggregate, no window. It is the same for each copy of
            # it: Spark takes nothing random into a join
            is_none = f"cast((\n{expression}\n) as string) is null and false"
            joined = f"{relation} inner join (select 1) on {is_none}"
            used = f"select 1 from {joined} where {is_none}"
        engine.rows(used)
    except Exception as error:
        return one_line(error)
    return None


def what_fails(
    engine: Engine, expressions: Iterable[tuple[str, str, str]], deliveries: str
) -> Iterator[str]:
    """A line for each filter or key that fails on a delivery, though it is valid SQL.

    expressions: for each how to name it, its text, and a condition for the deliveries that it is
    for; deliveries: a relation.
    """
    for name, text, condition in expressions:
        # a rejected row is left out: neither is asked about it
        is_accepted = "delivery_id is not null and received_at is not null and guaranteed"
        rows = f"(select * from {deliveries} where {is_accepted} is not null and ({condition}))"
        value = f"cast((\n{filter_sql(text)}\n) as string)"
        error = _error(engine, value, rows)
        if error is None:
            continue
        ids = [row[0] for row in engine.rows(f"select delivery_id from {rows} order by 1")]
        while len(ids) > 1:
            first = ids[: len(ids) // 2]
            among = f"delivery_id between {literal(first[0])} and {literal(first[-1])}"
            fails = _error(engine, value, f"(select * from {rows} where {among})") is not None
            ids = first if fails else ids[len(first) :]
        yield f"{name} {text} fails on delivery {ids[0]}: {one_line(error)}: correct it"


def _error(engine: Engine, value: str, rows: str) -> Exception | None:
    try:
        engine.rows(f"select count({value}) from {rows}")
    except Exception as error:
        return error
    return None


def _shape(match: re.Match[str]) -> str:
    if match["quoted"]:
        return "''"
    return "typed_field" if match["type"] else _FIELD


def _read(match: re.Match[str]) -> str:
    if match["quoted"]:
        return match["quoted"]
    path = "$" + "".join(f"[\\'{part}\\']" for part in match["path"].split("/"))
    # Spark reads no JSON behind a byte order mark, with which programs on Windows begin texts
    value = f"get_json_object(ltrim('\\ufeff', document), '{path}')"
    return f"try_cast({value} as {match['type']})" if match["type"] else value
