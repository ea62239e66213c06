"""Runs inside a session, with the image's interpreter (CPython 3.7 or later), the standard library and asv_runner.

The host packs this folder into one archive (`measurement.remote`), puts it into the session and writes one request, a
JSON object, to its standard input. Nothing else of the platform can be imported here.
"""
