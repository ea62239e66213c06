"""Lines of compiled code that a benchmark runs."""
