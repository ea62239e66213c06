"""Agents behind the repair rules: when one is asked, what it may use, and contexts as folders and as a library."""
