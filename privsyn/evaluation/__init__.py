"""Compare a synthetic table with the real one. Not private; independent of how the table was made."""
