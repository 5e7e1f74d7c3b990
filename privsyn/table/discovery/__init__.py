"""Find values and bounds that a schema leaves out, from noisy counts."""
