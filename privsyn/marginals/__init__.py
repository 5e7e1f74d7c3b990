"""Domains, tables of counts and counting: the types that all other folders share."""
