"""From noisy answers to consistent tables."""
