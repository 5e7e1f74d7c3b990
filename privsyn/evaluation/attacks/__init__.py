"""Attack synthetic tables (singling out, linking, inference), and noisy counts (reconstruct). Not private."""
