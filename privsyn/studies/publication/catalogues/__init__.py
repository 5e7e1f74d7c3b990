"""What catalogues, archives and hubs read beside a synthetic table, written from the release alone."""
