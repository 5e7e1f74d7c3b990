"""A local web page, for people who do not program: from a file to a publishable table."""
