"""Samplers: exact draws of noise from random words, each of one law."""
