"""Attacks on a synthetic table: singling out, linking, inference."""
