"""Ratios of two sums over the records, such as shares, rates and means of groups, and their intervals."""
