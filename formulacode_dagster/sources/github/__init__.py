"""GitHub's API: transport, pull requests, discussions, discovery of repositories."""
