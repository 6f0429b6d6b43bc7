"""Two copies of what a ``ps`` holds, whatever that is: which one serves, the witness, and how the other follows."""
