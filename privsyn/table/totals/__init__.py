"""Known totals: tables of exact counts that are public, as a user gives them, and what contradicts them."""
