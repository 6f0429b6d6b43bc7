"""Code that runs on the machine of a task, wherever the platform's server is: it manages processes there.

- `guard`: the process that outlives a launcher, to kill the processes that the launcher leaves.
- `keeper`: the process above each task of the platform; outlives the server and records how the task ended.
- `agent`: starts, polls and stops keepers, in the server or at the other end of a connection.
- `records`: files through which keepers and agents communicate.
- `processes`, `ports`, `gpus`, `lines`, `folders`: identities and trees of processes, ports, accelerators, output,
  folders of this user alone.

A keeper needs only the standard library, because there is one keeper for each task.
"""
