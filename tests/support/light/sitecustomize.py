"""A task that a test starts has no scikit-learn and no matplotlib.

Keras imports both where they are, which takes almost as long as all the rest of it, and the tasks use neither.
"""

import sys

# pyrefly: ignore[bad-assignment] - None stands for a module that cannot be imported, which the type leaves out
sys.modules |= dict.fromkeys(("sklearn", "matplotlib"))  # an import of either fails, as where it is not installed
