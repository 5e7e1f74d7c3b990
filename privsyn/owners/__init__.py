"""Several owners, one release: secure sums of counts and noise, and journals that resume a run."""
