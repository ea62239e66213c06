"""The stage `pull_requests`."""
