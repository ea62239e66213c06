"""Heads of generated files; they are shipped as text, and nothing here imports them."""
