"""Cells of one column to integer codes and back, from public facts alone.

How cells of a known format are read and written is here. Which format they have is decided in `inferred`.
"""
