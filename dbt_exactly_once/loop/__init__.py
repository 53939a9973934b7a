"""The command `exactly-once run`: one process that lands, decides and works, again and again."""
