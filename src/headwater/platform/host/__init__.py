"""What runs on the machine of a task, wherever the platform's server is: all that deals with processes there.

- `guard`: the process that stays behind a launcher to end what it leaves.
- `keeper`: the process above each task of the platform; outlives the server and tells how the task ended.
- `agent`: starts, polls and stops keepers, in the server or at the other end of a connection.
- `records`: what keepers and agents leave on disk for each other.
- `processes`, `ports`, `gpus`, `lines`, `folders`: identities and trees of processes, ports, accelerators, output,
  folders of this user alone.

Everything a keeper needs is in the standard library, because there is one keeper for each task.
"""
