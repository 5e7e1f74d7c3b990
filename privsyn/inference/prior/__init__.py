"""What is expected of a pair before and beside its own measurement: smoothness, a copula, latent classes."""
