"""Asking GitHub: tokens, pace, retries, and what was spent. What is asked for is not known here."""
