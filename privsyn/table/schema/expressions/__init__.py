"""Constraints as people write them, such as ``"end >= start"``, to the kinds of constraint there are."""
