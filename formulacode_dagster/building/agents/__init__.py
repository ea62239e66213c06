"""Coding agents of the command line, shut in containers: what they are asked and may change, and how they end."""
