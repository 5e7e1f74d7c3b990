"""Helps the owner write a schema; it reads the data and is not private."""
