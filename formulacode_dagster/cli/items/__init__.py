"""Commands about one pull request that do some work of their own."""
