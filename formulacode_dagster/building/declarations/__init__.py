"""Declarations of a repository at a commit about its build and benchmarks, read without running it."""
