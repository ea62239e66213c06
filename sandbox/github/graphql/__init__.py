"""GraphQL, executed for real over a subset of GitHub's published schema."""
