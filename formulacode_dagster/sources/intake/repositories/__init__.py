"""The stage `repositories`."""
