"""Noisy answers to consistent tables."""
