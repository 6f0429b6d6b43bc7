"""Embedding layers with rows on other tasks: finding a batch's rows and passing them to a compiled step."""
