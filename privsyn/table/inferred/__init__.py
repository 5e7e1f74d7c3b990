"""Infers kinds, formats and bounds of columns from their cells, for drafts and comparisons. Not private.

Which format cells have is decided here. How cells of a known format are read and written is in `encoding`.
"""
