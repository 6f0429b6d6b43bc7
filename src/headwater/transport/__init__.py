"""How tasks talk: frames on channels for tensors, gRPC for everything else. gRPC is imported here only."""
