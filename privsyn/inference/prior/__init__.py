"""Priors of columns and pairs: a distribution of counts, smoothness, a copula."""
