"""Cells of one column to integer codes and back."""
