"""Transport between tasks: frames on channels for tensors, gRPC for everything else. gRPC is imported here only."""

import os

# Keep gRPC's own messages, such as about a peer that disconnects, off the terminal. gRPC reads this variable when it is
# first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
