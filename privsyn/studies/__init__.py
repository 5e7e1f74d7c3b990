"""Plan a run, sweep many runs, forecast what models learn, and trace errors to their sources."""
