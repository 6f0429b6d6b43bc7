"""``tf.test.StubOutForTesting``: attributes replaced for a while."""

from __future__ import annotations

import inspect


class StubOutForTesting:
    """Replaces attributes of modules, classes and objects, and restores them.

    As a context manager it puts them back at the end of the block.
    """

    def __init__(self) -> None:
        self._set: list[tuple[object, str, object]] = []
        self._smart: list[tuple[object, str, object]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *unused: object) -> None:
        self.CleanUp()

    def __del__(self) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:
        """Restores all replaced attributes."""
        self.UnsetAll()
        self.SmartUnsetAll()

    def SmartSet(self, obj: object, attr_name: str, new_attr: object) -> None:
        """Replaces an attribute of a module or class; of an object its own, or else its class's.

        Raises:
          AttributeError: there is no such attribute.
        """
        own = inspect.ismodule(obj) or inspect.isclass(obj) or attr_name in getattr(obj, "__dict__", {})
        owner = obj if own else type(obj)
        if not hasattr(owner, attr_name):
            raise AttributeError("Attribute not found.", name=attr_name)
        self._replace(self._smart, owner, attr_name, new_attr)

    def SmartUnsetAll(self) -> None:
        """Restores attributes that `SmartSet` replaced, the last first."""
        self._put_back(self._smart)

    def Set(self, parent: object, child_name: str, new_child: object) -> None:
        """Replaces an attribute of ``parent``.

        Raises:
          AttributeError: there is no such attribute.
        """
        self._replace(self._set, parent, child_name, new_child)

    def UnsetAll(self) -> None:
        """Restores attributes that `Set` replaced, the last first."""
        self._put_back(self._set)

    def _replace(self, kept: list[tuple[object, str, object]], owner: object, name: str, new: object) -> None:
        before: object = vars(owner).get(name, getattr(owner, name))
        kept.append((owner, name, before))
        setattr(owner, name, staticmethod(new) if isinstance(before, staticmethod) and callable(new) else new)

    def _put_back(self, kept: list[tuple[object, str, object]]) -> None:
        while kept:
            owner, name, before = kept.pop()
            setattr(owner, name, before)
