"""Input of a build: the spec of an image, its tiers and recipes, and the build context."""
