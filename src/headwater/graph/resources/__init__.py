"""Resources of a task that outlive steps: variables' values, queues, accumulators, tables, barriers, in containers."""
