"""Two tables side by side: how far a synthetic one is from the real. It reads both and knows no mechanism."""
