"""Local privacy: randomised response on the respondents' side, and exact counts of randomised tables."""
