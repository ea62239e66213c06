"""What is to be built: the spec of an image, its tiers and recipes, and the context they are built from."""
