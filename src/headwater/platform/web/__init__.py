"""The web page of the platform: templates, what is served with them, and the routes.

Everything that a browser gets comes from this server; no step of building is needed. ``static/htmx.min.js`` is
`htmx <https://htmx.org>`_ 2.0.11, whose licence is beside it; the other scripts are Headwater's own.
"""
