"""Where the tasks of a job run: behind one interface, `headwater.platform.backends.base`.

This package imports nothing, so that what runs on a task's host (`headwater.platform.host`) starts quickly.
"""
