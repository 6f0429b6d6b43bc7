"""Backends, which run the tasks of jobs, behind one interface: `headwater.platform.backends.base`.

This package imports nothing, so that the code on a task's host (`headwater.platform.host`) starts quickly.
"""
