"""The commands of `exactly-once`, and their options.

What a command does is imported when it runs: Spark, Arrow and dbt take seconds to import.
"""
