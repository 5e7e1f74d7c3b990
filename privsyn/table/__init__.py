"""Everything about real tables: what is public about them, how cells become codes, how files are read."""
