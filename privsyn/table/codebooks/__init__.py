"""Reads public codebooks: what they say of the columns, keys and links of tables becomes a schema."""
