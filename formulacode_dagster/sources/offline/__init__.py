"""Months from files and from bare mirrors, without GitHub."""
