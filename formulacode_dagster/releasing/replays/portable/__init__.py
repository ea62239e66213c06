"""Replays packed tasks on a machine without Docker, network or root: standard library only, CPython 3.9 and later.

Packed into one executable file, `replay`, next to images, harness and tasks; see `packing`.
"""
