"""Combines the shares of a batch that several workers compute, so that the result equals the step of one process. Used
by mirrored training and by parameter servers."""
