"""How dbt and the commands reach Spark and the lake: engine, session, startup, lake version."""
