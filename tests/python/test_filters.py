"""Filters read fields of the document, outside of quotes only."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.filters import filter_sql


@pytest.mark.parametrize(
    ("written", "sql"),
    [
        ("redelivery_count = 0", "redelivery_count = 0"),
        (
            "%order/number% = 'A1'",
            r"get_json_object(ltrim('\ufeff', document), '$[\'order\'][\'number\']') = 'A1'",
        ),
        (
            "%total:decimal(10, 2)% > 5",
            r"try_cast(get_json_object(ltrim('\ufeff', document), '$[\'total\']') "
            "as decimal(10, 2)) > 5",
        ),
        ("uuid like '%order/x%'", "uuid like '%order/x%'"),
        (
            "uuid = \"%a%\" and errors_to = 'it''s %b%'",
            "uuid = \"%a%\" and errors_to = 'it''s %b%'",
        ),
        ("redelivery_count % 2 = 0", "redelivery_count % 2 = 0"),
    ],
)
def test_a_filter_reads_the_document(written: str, sql: str) -> None:
    assert filter_sql(written) == sql


@pytest.mark.parametrize(
    "written",
    [
        "%total% > 5",
        "5 <= %total%",
        "%total% between 1 and 2",
        "%total% not in (1, 2)",
        "%total% * 2 > 4",
        "uuid = 'x' and %total%=-1",
        "(%total%) > 5",
        "uuid = 'x' and (%total%) > (5)",
        "%total% > redelivery_count",
        "redelivery_count < %total%",
        "5d < %total%",
        "1.5e3 <= (%total%)",
    ],
)
def test_an_untyped_field_is_not_compared_with_a_number(written: str) -> None:
    with pytest.raises(ExactlyOnceError, match="%total:double%"):
        filter_sql(written)


@pytest.mark.parametrize(
    "written",
    [
        "length(%total%) > 5",
        "sha2(document, 256) = %hash%",
        "upper(%kind%) = 'X' and redelivery_count > 1",
        "(%total:int%) > 5",
        "%kind% in ('1', '2')",
    ],
)
def test_what_is_no_comparison_of_an_untyped_field_is_taken(written: str) -> None:
    assert r"get_json_object(ltrim('\ufeff', document), " in filter_sql(written)


def test_a_byte_order_mark_is_no_part_of_the_document(spark: SparkSession) -> None:
    document = '\ufeff{"order": {"number": "A1"}}'
    read = filter_sql("%order/number%")
    deliveries = spark.createDataFrame([(document,)], "document string")
    assert deliveries.selectExpr(read).first() == ("A1",)
