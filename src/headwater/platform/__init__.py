"""Jobs: what to run, as a file or a form, and what starts, watches, restarts and scales it.

- `spec`, `job_file`: what a job is, and how it is read from ``job.yaml``.
- `policy`: what to do next, as a function of what has happened; starts and reads nothing.
- `store`: what is remembered: jobs, tasks, attempts, events, tokens.
- `backends`: where tasks run: this machine, other hosts, Ray, Kubernetes, Slurm.
- `manager`: brings what runs in line with what is wanted.
- `api`: the same over HTTP.

A job runs as the user that the server runs as. Everything here reaches a job's tasks through processes and HTTP only.
"""
