"""The page of `exactly-once report`."""
