"""Agents after the repair rules: when to ask one, its budget, and build contexts as folders and as a library."""
