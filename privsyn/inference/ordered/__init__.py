"""Columns with an order: their groups of codes, their tails, and which way two of them go together."""
