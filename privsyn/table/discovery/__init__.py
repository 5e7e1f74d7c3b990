"""What the schema leaves open, and what the noisy answers say about it."""
