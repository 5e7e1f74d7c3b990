"""Whole tables to integer codes and back: columns, gaps between columns, and parts of times."""
