"""Frozen models that the stages hand to each other. Import the concrete submodule."""
