"""Conditional samples: rows with given values, ranges or balanced classes."""
