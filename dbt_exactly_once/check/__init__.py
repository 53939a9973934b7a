"""What `exactly-once check` looks at before a run, without a Spark session."""
