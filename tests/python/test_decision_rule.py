"""The rule table in SQL is the one of seeds/decision_rules.csv."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import product
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from pyspark.sql import Row, SparkSession

PROJECT_FOLDER = Path(__file__).parents[2]
FLAG = ("true", "false")
NOT_ASKED = None
# every value of the nine inputs, in the order of the macro's arguments and of the seed's columns
INPUTS: dict[str, tuple[str | None, ...]] = {
    "eligible": FLAG,
    "detect_duplicates": FLAG,
    "use_history": FLAG,
    "has_resolver": FLAG,
    "redelivery": ("FIRST", "REDELIVERED", "UNDEFINED"),
    "key_state": ("USABLE", "MISSING", "TOO_LONG"),
    "history_state": ("NONE", "PROCESSING", "COMPLETED", "BOTH", "UNAVAILABLE"),
    "resolver_result": (
        NOT_ASKED,
        "NEW",
        "DUPLICATE",
        "IN_DOUBT",
        "TRANSIENT_ERROR",
        "ERROR",
        "INVALID",
    ),
    "suspends_on_error": FLAG,
}


def rules_of_the_seed() -> list[dict[str, str]]:
    """The rows of the table."""
    path = PROJECT_FOLDER / "seeds" / "decision_rules.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def matches(pattern: str, value: str | None) -> bool:
    """A star is any value, `a|b` either."""
    return pattern == "*" or value in pattern.split("|")


def rule_of_the_seed(
    rules: list[dict[str, str]], combination: tuple[str | None, ...]
) -> str | None:
    """The one rule that matches; None where a resolver has not answered and must."""
    given = dict(zip(INPUTS, combination, strict=True))
    found = [
        rule["rule_id"] for rule in rules if all(matches(rule[name], given[name]) for name in given)
    ]
    assert len(found) <= 1, f"{given} matches {found}"
    if not found:
        assert given["resolver_result"] is NOT_ASKED, f"{given} matches no rule"
        assert given["has_resolver"] == "true", f"{given} waits for a resolver that is none"
    return found[0] if found else None


def rule_in_sql() -> str:
    """The macro, rendered over columns that are named as the inputs."""
    environment = Environment(
        loader=FileSystemLoader(PROJECT_FOLDER / "macros" / "detect"),
        extensions=["jinja2.ext.do"],
        autoescape=False,
    )
    environment.globals["decision_rules"] = rules_of_the_seed
    macro = environment.loader.get_source(environment, "decision_rule.sql")[0]
    inputs = {name: name for name in INPUTS}
    return environment.from_string(f"{macro}{{{{ decision_rule({inputs}) }}}}").render()


def test_the_macro_is_the_seed_on_every_combination_of_inputs(spark: SparkSession) -> None:
    rules = rules_of_the_seed()
    by_id = {rule["rule_id"]: rule for rule in rules}
    combinations = list(product(*INPUTS.values()))
    by_seed = [(*given, rule_of_the_seed(rules, given)) for given in combinations]
    columns = ", ".join(
        f"cast({name} as boolean) as {name}" if values is FLAG else name
        for name, values in INPUTS.items()
    )
    spark.createDataFrame(
        by_seed, ", ".join(f"{name} string" for name in (*INPUTS, "by_seed"))
    ).createOrReplaceTempView("every_combination")

    told: list[Row] = spark.sql(
        f"select *, {rule_in_sql()} as by_macro from (select {columns}, by_seed "
        "from every_combination)"
    ).collect()
    spark.catalog.dropTempView("every_combination")

    def of_the_seed(rule_id: str | None) -> tuple[str, ...] | None:
        columns = ("rule_id", "status", "decided_by")
        return tuple(by_id[rule_id][column] for column in columns) if rule_id else None

    different = [row.asDict() for row in told if row["by_macro"] != of_the_seed(row["by_seed"])]
    assert len(told) == len(combinations)
    assert not different, f"{len(different)} combinations differ, the first: {different[0]}"


def test_every_rule_is_the_one_of_some_combination() -> None:
    rules = rules_of_the_seed()
    used = Counter(rule_of_the_seed(rules, given) for given in product(*INPUTS.values()))
    unused = [rule["rule_id"] for rule in rules if rule["rule_id"] not in used]
    assert not unused
    assert used[None], "no combination needs a resolver's answer"
