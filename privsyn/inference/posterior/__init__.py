"""Draw tables that the private one could have, given the noisy answers."""
