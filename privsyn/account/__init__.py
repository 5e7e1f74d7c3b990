"""What runs have spent on a table, and how much its owner lets them spend."""
