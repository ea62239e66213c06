"""Intake: the stages `repositories` and `pull_requests`."""
