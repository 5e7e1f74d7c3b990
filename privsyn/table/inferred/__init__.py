"""Infers kinds, formats and bounds of columns from their cells, for drafts and comparisons. Not private."""
