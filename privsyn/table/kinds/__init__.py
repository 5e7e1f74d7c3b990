"""Kinds of column, one a file: settings, encoder, words, what is asked under privacy, and drafts."""
