"""Around the runs: what one would bring, what its release says, where its error comes from, and many runs."""
