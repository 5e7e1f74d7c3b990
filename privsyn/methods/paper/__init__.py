"""PrivSyn as published by Zhang et al. (USENIX Security 2021)."""
