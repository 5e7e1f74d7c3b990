"""The algorithms as they run: which questions are asked, and with which share of the budget."""
