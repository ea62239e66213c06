"""Cancellation: the stop request, abandoned threads, and child programs that are killed.

Also per-process singletons: the clock and the trusted certificates.
"""
