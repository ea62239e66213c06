"""How work ends early: the request to stop, threads that may be left, programs of this machine that are killed.

And what a process has once, as its clock and the certificates it trusts.
"""
