"""Beginnings of files that are laid over a checkout; each is text that is shipped, and nothing here imports it."""
