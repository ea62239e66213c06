"""Checks that a built image is what it claims to be: verified by the host in one order, up to the first failure."""
