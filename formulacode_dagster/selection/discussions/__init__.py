"""Discussions behind performance pull requests: issues, comments and references, as they stood before the merge."""
