"""Coding agents of the command line, confined in containers: their task, their permissions, and their outcomes."""
