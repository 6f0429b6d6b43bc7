"""How tasks talk: frames on channels for tensors, gRPC for everything else. gRPC is imported here only."""

import os

# gRPC's own notes, such as that a peer said goodbye, belong on no terminal. It reads this when first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
