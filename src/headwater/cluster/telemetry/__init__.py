"""Reports of a running task: progress, snapshots, step statistics, failures to write."""
