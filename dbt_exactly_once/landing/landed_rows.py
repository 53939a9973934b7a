"""What has landed, as a run reads it: the rows that no run has consumed, and the consumed ones.

A run consumes a landed table up to a snapshot. If that snapshot is an ancestor of the one this
run has frozen, and all commits between them only appended, compacted or deleted files, Iceberg
reads just the appended files. If a commit between them has overwritten files, or the table was
set back or its snapshots have expired, the two versions are compared. If the consumed snapshot
is gone, as after a table was dropped and landed again, the ledgers show what was consumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.landing.landed_tables import SAME_IN, LandedTable

# commits that Iceberg's incremental read covers: it shows all appended rows and skips the others
PLAIN_COMMITS = {"append", "replace", "delete"}
# smaller than Iceberg's own: a few megabytes of documents keep more than one core busy
IN_SPLITS = "`split-size` = '4194304', `file-open-cost` = '524288'"
# of times that a literal can name; other writers can append others
YEARS = "1 and 9999"
# a condition on more days than these is one on the span from the first to the last
MOST_DAYS = 40


@dataclass(frozen=True)
class LandedRows:
    """How one landed table is read between two of its snapshots.

    way: NONE, ALL, APPENDED, COMPARED or KNOWN (to the ledgers). commits: how many have appended
    rows; may_miss_consumed: whether consumed rows may have been removed; was_compacted: whether
    appended files may have been merged since; days: on which days versions are compared, None for
    all.
    """

    table: LandedTable
    consumed: str | None
    landed: str | None
    way: str
    commits: int = 0
    may_miss_consumed: bool = False
    was_compacted: bool = False
    days: tuple[str | None, ...] | None = None
    ledgers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        engine: Engine,
        table: LandedTable,
        consumed: str | None,
        landed: str | None,
        ledgers: Mapping[str, str],
    ) -> LandedRows:
        """Find out how to read a table from the snapshot that was consumed to the landed one.

        ledgers: how to read each ledger as the last run published it.
        """
        if landed is None or landed == consumed:
            return cls(table, consumed, landed, "NONE")
        if consumed is None:
            return cls(table, consumed, landed, "ALL", commits=2)
        kinds = engine.commits_between(table.relation, consumed, landed)
        if kinds is not None and set(kinds) <= PLAIN_COMMITS:
            appends = kinds.count("append")
            removed, compacted = "delete" in kinds, "replace" in kinds
            return cls(table, consumed, landed, "APPENDED", appends, removed, compacted)
        if engine.has_snapshot(table.relation, consumed):
            days = _days_of_new_files(engine, table, consumed, landed)
            return cls(table, consumed, landed, "COMPARED", 2, True, days=days)
        return cls(table, consumed, landed, "KNOWN", 2, True, ledgers=ledgers)

    def unconsumed(self) -> str:
        """A relation of the rows that no run has consumed, with landed_file and landed_position."""
        if self.way == "NONE":
            return self._version(None)
        if self.way == "APPENDED":
            return (
                f"(select {self._with_place()} from {self.table.relation} with "
                f"(`start-snapshot-id` = '{self.consumed}', `end-snapshot-id` = '{self.landed}', "
                f"{IN_SPLITS}))"
            )
        if self.way == "COMPARED":
            return self._compared()
        if self.way == "KNOWN":
            return self._not_known()
        return self.until_landed()

    def files(self) -> str | None:
        """A relation of the files that this run reads, with the sequence_number of the commit that
        brought each; None if there are none."""
        if self.was_compacted:
            # the frozen snapshot does not name the appended files any more
            return (
                "(select data_file.file_path, min(sequence_number) as sequence_number "
                f"from {self.table.relation}.all_entries group by data_file.file_path)"
            )
        return self.landed and (
            "(select data_file.file_path, sequence_number "
            f"from {self.table.relation}.entries version as of {self.landed})"
        )

    def until_landed(self) -> str:
        """A relation of all rows that this run has frozen."""
        return self._version(self.landed)

    def until_consumed(self) -> str:
        """A relation of the rows that earlier runs have consumed, without those that are gone."""
        if self.way == "KNOWN" and self.table.name == "deliveries":
            return (
                f"(select * from {self.until_landed()} left semi join ({self._known_deliveries()}) "
                "as known on delivery_id = known_id)"
            )
        # a table that was dropped, and made again without rows, has no snapshot
        return self._version(self.landed and self.consumed)

    def warnings(self) -> list[str]:
        """What a person should know of a table that cannot be read by its appended files."""
        if self.way == "COMPARED":
            return [
                f"{self.table.relation} was overwritten, set back, or its snapshots have expired "
                "since the last run: its rows were compared with those consumed"
            ]
        if self.way == "KNOWN":
            return [
                f"{self.table.relation} does not have the snapshot that the last run consumed: it "
                "was dropped or its tag was; the ledgers show which rows are new"
            ]
        return []

    def _with_place(self) -> str:
        # other columns, of the user's own, may have any name, also one that the models use
        return f"{self.table.column_list}, _file as landed_file, _pos as landed_position"

    def _version(self, snapshot: str | None) -> str:
        version = "where false" if snapshot is None else f"version as of {snapshot}"
        return f"(select {self._with_place()} from {self.table.relation} {version})"

    def _compared(self) -> str:
        """The landed rows that were not consumed; of equal rows only the copies that were added.

        A request, command or report stays the same row if somebody has updated columns of it that
        do not tell such rows apart.
        """
        columns = self.table.column_list
        content = _content(self.table.columns)
        if self.table.name != "deliveries":
            told_apart = {self.table.id_column, *SAME_IN.get(self.table.name, [])}
            same = _content([column for column in self.table.columns if column[0] in told_apart])
            content = f"if({self.table.id_column} is null, {content}, {same})"
        days = self._on_days()
        numbered = (
            f"select {{}}, {content} as content, row_number() over (partition by {content} "
            "order by landed_file, landed_position) as copy from {} where " + days
        )
        landed = numbered.format(f"{columns}, landed_file, landed_position", self.until_landed())
        consumed = numbered.format("1 as one", self._version(self.consumed))
        return (
            f"(select {columns}, landed_file, landed_position from ({landed}) as landed left anti "
            f"join ({consumed}) as consumed on landed.content = consumed.content "
            "and landed.copy = consumed.copy)"
        )

    def _on_days(self) -> str:
        column = self.table.day_column
        if self.days is None or column is None:
            return "true"
        days = sorted(day for day in self.days if day is not None)
        stretches = [(day, day) for day in days]
        if len(days) > MOST_DAYS:
            stretches = [(days[0], days[-1])]
        conditions = [
            f"({column} >= timestamp '{first}' and {column} < timestamp '{last}' + interval 1 day)"
            for first, last in stretches
        ]
        if None in self.days:
            conditions.append(f"coalesce(year({column}) not between {YEARS}, true)")
        return f"({' or '.join(conditions or ['false'])})"

    def _not_known(self) -> str:
        """The landed rows that no ledger names."""
        ledgers = self.ledgers
        known, matches = {
            "deliveries": (self._known_deliveries(), "delivery_id = known_id"),
            # rows of open documents are all read again, rows of ended documents never
            "trigger_executions": (
                "select statuses.delivery_id as known_id, statuses.trigger_name as known_trigger "
                f"from {ledgers['document_status']} as statuses left anti join "
                f"{ledgers['open_documents']} as still_open on statuses.delivery_id = "
                "still_open.delivery_id and statuses.trigger_name = still_open.trigger_name",
                "delivery_id = known_id and trigger_name = known_trigger",
            ),
            "resubmissions": (
                "select reference_id as known_id, delivery_id as known_delivery "
                f"from {ledgers['journal_entries']} where event in ('RESUBMITTED', 'REFUSED')",
                "resubmission_id = known_id and delivery_id <=> known_delivery",
            ),
            # no ledger keeps the id of a command
            "trigger_commands": (
                f"select max(started_at) as known_until from {ledgers['published_runs']} "
                "where kind = 'run'",
                "issued_at < known_until",
            ),
            "rejected_landings": (
                f"select rejection_id as known_id from {ledgers['rejected_deliveries']}",
                "rejection_id = known_id",
            ),
        }[self.table.name]
        return (
            f"(select * from {self.until_landed()} left anti join ({known}) as known on {matches})"
        )

    def _known_deliveries(self) -> str:
        ledgers = self.ledgers
        return (
            f"select {landed_delivery_id('delivery_id')} as known_id "
            f"from {ledgers['document_status']} "
            f"union all select landed_delivery_id from {ledgers['waiting_deliveries']} "
            f"union all select delivery_id from {ledgers['journal_entries']} "
            "where event in ('UNROUTED', 'UNKNOWN_DESTINATION', "
            "'NOT_TAKEN')"
        )


def landed_delivery_id(column: str) -> str:
    """The SQL of the macro landed_delivery_id: the id without a recovery or resubmission suffix."""
    return f"regexp_replace({column}, '/(recovery|resubmission)-[0-9]+$', '')"


def _days_of_new_files(
    engine: Engine, table: LandedTable, consumed: str, landed: str
) -> tuple[str | None, ...] | None:
    """The days of the rows in files added since a snapshot, None for a time of no year that can be
    written; None in place of all if the table has no day column."""
    column = table.day_column
    if column is None:
        return None
    files = f"select file_path from {table.relation}.files version as of"
    found = engine.rows(
        f"select distinct if(year({column}) between {YEARS}, cast(to_date({column}) as string), "
        f"null) from (select {column}, _file from "
        f"{table.relation} version as of {landed}) as landed left semi join "
        f"({files} {landed} except {files} {consumed}) as added on landed._file = added.file_path"
    )
    return tuple(row[0] for row in found)


def _content(columns: Sequence[tuple[str, str, str]]) -> str:
    """A hash of a whole row; a time goes in as a number, since its text has no microseconds."""
    values = ", ".join(
        f"{literal(name)}, {f'unix_micros({name})' if kind == 'timestamp' else name}"
        for name, kind, _ in columns
    )
    return f"sha2(to_json(named_struct({values})), 256)"
