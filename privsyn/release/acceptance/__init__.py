"""Criteria that a release must meet: read, checked against the schema, and tested under privacy."""
