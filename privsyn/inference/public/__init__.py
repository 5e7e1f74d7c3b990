"""Public rows: how they are weighted and judged by released answers."""
