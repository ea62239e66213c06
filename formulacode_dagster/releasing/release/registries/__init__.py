"""Registries of images: pushed once under a tag that never moves, pulled back blob by blob, and what is attached."""
