"""Commands about images that take more than rules: contexts, and agents."""
