"""Which rows of a landing break the contract, repeat a landed row, or conflict with one, as SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dbt_exactly_once.adapter.engine import literal
from dbt_exactly_once.adapter.macros import macro_result
from dbt_exactly_once.adapter.seed_files import seed_as_written
from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.landed_tables import CONSUMED_TAG, LandedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELIVERIES = "deliveries"
LANDED_AT = "landed_at"
REPEATED = "REPEATED"
CONFLICTING = "CONFLICTING"
# the macros on landed rows, see macro_result
MACROS = "documents/contract"


def contract(project: Project, target: LandedTable) -> tuple[str, dict[str, str]]:
    """The reason why a well-typed row breaks the contract, and the message for each, as SQL."""
    id_column = target.id_column
    missing_id = f"MISSING_{id_column.upper()}"
    text_of_id = f"cast({id_column} as string)"
    messages = {
        missing_id: literal(f"{id_column} is missing"),
        REPEATED: f"concat('{id_column} ', {text_of_id}, ' has landed before, with this content')",
        CONFLICTING: (
            f"concat('{id_column} ', {text_of_id}, "
            "' has landed before with other content, which stays')"
        ),
    }
    if target.name != DELIVERIES:
        return (
            f"case when {id_column} is null or {id_column} = '' then '{missing_id}' end",
            messages,
        )
    transports = project.seed_file("transports")
    folder = project.folder if transports.is_relative_to(project.folder) else project.package_folder
    messages |= {
        "RESERVED_ID": (
            "concat('delivery_id ', delivery_id, ' has /recovery- or /resubmission- in it, "
            "which the project gives')"
        ),
        "MISSING_RECEIVED_AT": literal("received_at is missing"),
        "IMPOSSIBLE_RECEIVED_AT": literal("received_at is not in the years 1 to 9999"),
        "MISSING_GUARANTEED": literal("guaranteed is missing"),
        "UNKNOWN_TRANSPORT": (
            "concat('transport ', coalesce(transport, 'null'), "
            f"{literal(f' is not one of {transports.relative_to(folder).as_posix()}')})"
        ),
    }
    known = ", ".join(literal(name) for name in _names(transports))
    breach = macro_result(
        project.package_folder,
        MACROS,
        "contract_breach",
        transport_known=f"transport in ({known})",
    )
    return breach, messages


def _names(transports: Path) -> list[str]:
    table = seed_as_written(str(transports), ",")
    column = table.columns["transport"] if "transport" in table.column_names else []
    names = [name.strip(" ") for name in column if name]
    if not names:
        raise ExactlyOnceError(
            f"{transports} names no transport, in a column transport: without one no delivery can "
            "land"
        )
    return names


def judged_sql(staged: str, landed: str, target: LandedTable, breach: str, content: str) -> str:
    """One row per staged row: its number, and why it is rejected or null if it lands.

    Only ids and hashes are compared, never documents.
    """
    id_column = target.id_column
    return f"""
        with

        read as (
            select
                landing_row,
                {id_column} as row_id,
                {content} as content,
                coalesce(fault, {breach}) as breach
            from {staged}
        ),

        arrivals as (
            select
                *,
                row_number() over same_id as arrival,
                first_value(content) over same_id as first_content
            from read
            where breach is null
            window same_id as (partition by row_id order by landing_row)
        ),

        landed as ({landed})

        select landing_row, breach as reason
        from read
        where breach is not null

        union all

        select
            arrivals.landing_row,
            case
                when landed.row_id is null and arrivals.arrival = 1 then null
                when arrivals.content = coalesce(landed.content, arrivals.first_content)
                    then '{REPEATED}'
                else '{CONFLICTING}'
            end as reason
        from arrivals
        left join landed on arrivals.row_id = landed.row_id
    """


def landed_sql(
    spark: SparkSession,
    project: Project,
    staged: str,
    target: LandedTable,
    breach: str,
    content: str,
) -> str:
    """The ids of staged rows that have landed before, with the content of the first row of each.

    Rows that break the contract or that a run has rejected are left out, so that the right row can
    land. The first query reads ids and times only. Content is read only between the first and last
    of these times, so that a landing does not read all documents that ever landed.
    """
    id_column, day_column = target.id_column, target.day_column
    known = f"{id_column} in (select {id_column} from {staged})"
    times = f"unix_micros({day_column})" if day_column else "null"
    number, first, last = spark.sql(
        f"select count(*), min({times}), max({times}) from {target.relation} where {known}"
    ).first()
    # rows without received_at break the contract: these ids have landed in no valid row
    if not number or (day_column and first is None):
        return "select cast(null as string) as row_id, cast(null as string) as content where false"
    if day_column:
        known += f" and {day_column} between timestamp_micros({first}) and timestamp_micros({last})"
    # one without landed_at comes last, as in the macro order_of_landing
    landed = [f"{LANDED_AT} is null", LANDED_AT] if LANDED_AT in target.types else []
    order = ", ".join([*landed, "_file", "_pos"])
    rows = f"(select *, _file, _pos from {target.relation} where {known} and ({breach}) is null)"
    rejected = _rejected_texts(spark, target)
    if rejected:
        text = macro_result(project.package_folder, MACROS, "delivery_as_json")
        rows += (
            f" left anti join ({rejected}) on delivery_id = rejected_id and {text} = rejected_text"
        )
    return f"""
        select {id_column} as row_id, min_by({content}, struct({order})) as content
        from {rows}
        group by {id_column}
    """


def _rejected_texts(spark: SparkSession, target: LandedTable) -> str | None:
    """The landed rows that runs have rejected, as delivery_as_json gives them.

    Rows rejected as REPEATED are left out: they are as good as the first row of their id.
    """
    if target.name != DELIVERIES:
        return None
    # each schema of ledgers that has consumed the table has a tag there
    tags = spark.sql(
        f"select name from {target.relation}.refs where startswith(name, '{CONSUMED_TAG}')"
    ).collect()
    schemas = [name.removeprefix(CONSUMED_TAG) for (name,) in tags]
    return " union all ".join(
        "select delivery_id as rejected_id, raw_text as rejected_text "
        f"from {schema}.rejected_deliveries where reason != '{REPEATED}'"
        for schema in schemas
        if spark.catalog.tableExists(f"{schema}.rejected_deliveries")
    )
