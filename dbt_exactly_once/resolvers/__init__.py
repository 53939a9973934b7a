"""The user's functions in python_udfs: found, loaded, given to Spark and its workers."""
