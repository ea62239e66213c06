"""What the stages `repositories` and `pull_requests` do with their items."""
