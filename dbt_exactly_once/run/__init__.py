"""A run as a transaction: its lock, its ledgers, recovery, publication, upkeep, migration."""
