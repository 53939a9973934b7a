"""What comes in: files and brokers, the landed tables, and how a run reads their rows."""
