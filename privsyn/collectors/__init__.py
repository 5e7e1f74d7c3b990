"""Collectors: thousands of contributors send a row each in secret shares, and noisy sums alone are opened."""
