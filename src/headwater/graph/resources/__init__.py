"""What a task keeps between steps: variables' values, queues, accumulators, tables, barriers, in containers."""
