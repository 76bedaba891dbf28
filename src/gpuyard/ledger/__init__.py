"""The card ledger: every card-millisecond in exactly one bucket. What is known comes in, sums go out; nothing else."""
