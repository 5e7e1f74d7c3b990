"""Cells to integer codes and back, one encoder for each kind of column."""
