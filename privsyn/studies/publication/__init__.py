"""What is published beside a release: its public page and its data sheet."""
