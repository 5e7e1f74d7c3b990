"""Attack a synthetic table: singling out, linking and inference. Not private."""
