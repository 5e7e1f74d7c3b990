"""The only place that sees rows after the rim; every answer leaves with noise and a line in the ledger."""
