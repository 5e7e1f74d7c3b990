"""A release from tables of counts that somebody else measured."""
