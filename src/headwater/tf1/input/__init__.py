"""Input of a graph: queues, readers, parsing of examples, and datasets with their iterators."""
