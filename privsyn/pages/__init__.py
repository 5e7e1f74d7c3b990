"""Make web pages and data sheets: sections over one template, plots, and numbers in words."""
