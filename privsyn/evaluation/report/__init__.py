"""Write the HTML pages of an evaluation and of a release."""
