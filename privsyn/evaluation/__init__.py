"""Two tables side by side; it knows no mechanism."""
