"""Consistent tables to records."""
