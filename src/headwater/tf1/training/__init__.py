"""Training: optimizers, saving, supervising, summaries, input queues."""
