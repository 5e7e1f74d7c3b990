"""Enforce constraints: computed columns, structural zeros, and the repair of drawn rows."""
