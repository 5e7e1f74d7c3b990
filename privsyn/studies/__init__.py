"""What a run would bring, many runs on one table, and where errors come from."""
