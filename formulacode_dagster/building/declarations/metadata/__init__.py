"""A package's own metadata, in each of its historical forms."""
