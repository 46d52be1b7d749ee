"""Mixture: which datasets a run has really seen, counted exactly and held against its mix.

`ledger` counts the batches of one rank, `totals` adds ranks up, `plan` is what the mix declares,
`watch` compares the two while the run goes on and `realized` when it is over. `callback` does so
inside of Megatron-Bridge, `replay` without it. What they write is in `factory.reports`.
"""
