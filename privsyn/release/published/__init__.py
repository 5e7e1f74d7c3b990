"""Models of public tables, shipped with the package: to be sampled and asked without a private table."""
