"""The only code that sees coded rows: questions, noise, accounting, ledger."""
