"""What to expect of a run: the split of its budget, its noise and errors, from public facts alone."""
