"""From questions to answers: each file is one algorithm, printed as it runs.

A method is a function ``learn(private, rho, rng, report) -> Learnt`` that asks the private table, splits
the budget once and never spends more than `rho`; how records are made of what it learnt is in
`privsyn.answers.synthesis`.
"""
