"""Engines build images and run their code: the protocol, and its two implementations."""
