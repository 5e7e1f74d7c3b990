"""Tests of a released table against the private one: exact statistics, their sensitivity, and verdicts."""
