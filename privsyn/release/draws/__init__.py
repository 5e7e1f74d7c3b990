"""Several tables that carry the noise, and how to pool what is estimated from them."""
