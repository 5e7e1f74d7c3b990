"""Arithmetic on noisy answers: nothing here ever sees a row of the private table."""
