"""How the shares of a batch that several workers compute become the step of one process: used by mirrored training and
by parameter servers alike."""
