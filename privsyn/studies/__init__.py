"""Plan a run, publish pages of a release, sweep many runs, and trace errors to their sources."""
