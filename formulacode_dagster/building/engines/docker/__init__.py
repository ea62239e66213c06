"""The engine of a Docker daemon."""
