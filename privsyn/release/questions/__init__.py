"""Questions to a release in words, and their answers with intervals: from what is released, at no cost."""
