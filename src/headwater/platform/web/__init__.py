"""The web page of the platform: templates, static files, and routes.

Browsers load everything from this server; there is no build step. ``static/htmx.min.js`` is
`htmx <https://htmx.org>`_ 2.0.11 and ``static/uplot.min.js`` is `uPlot <https://github.com/leeoniya/uPlot>`_ 1.6.32,
with their licences beside them; the other scripts are Headwater's own.
"""
