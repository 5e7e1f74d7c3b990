"""Domains, tables of counts, and counting: the vocabulary that all other folders share."""
