"""Draw tables that the private one could have, given the noisy answers; tilt tables to a concordance."""
