"""Plan a run, sweep many runs on one table, and trace errors to their sources."""
