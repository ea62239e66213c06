"""How work ends early: the request to stop, threads that may be left, programs of this machine that are killed."""
