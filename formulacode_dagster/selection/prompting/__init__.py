"""Prompts: how models are shown texts written by strangers."""
