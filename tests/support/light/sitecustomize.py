"""Disables scikit-learn and matplotlib in tasks that tests start.

Keras imports both if they are installed, which takes almost as long as all its other imports. The tasks use neither.
"""

import sys

# pyrefly: ignore[bad-assignment] - None marks a module that cannot be imported; the declared type does not allow None
sys.modules |= dict.fromkeys(("sklearn", "matplotlib"))  # an import fails, as if the package was not installed
