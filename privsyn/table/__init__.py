"""The rim: the only place that knows pandas and files."""
