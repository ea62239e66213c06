"""Removes images, containers and folders to keep disk use within limits."""
