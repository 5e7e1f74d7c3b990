"""Kinds of column, one a file: settings, encoder, words, and what is asked under privacy."""
