"""Protobuf messages that ``tensorboard.compat.proto`` lacks; ``tools/protos.sh`` generates the modules."""
