"""Plan a run, sweep many runs on a table or a release, and trace errors to their sources."""
