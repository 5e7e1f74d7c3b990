"""A release from tables of counts that were measured elsewhere."""
