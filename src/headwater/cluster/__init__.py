"""Who is in a cluster and what its devices are called: specs, device names, ``TF_CONFIG``."""
