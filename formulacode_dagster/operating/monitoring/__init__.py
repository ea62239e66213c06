"""Alerts, metrics and traces: how people learn about the state of the platform."""
