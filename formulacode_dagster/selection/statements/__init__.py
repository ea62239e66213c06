"""Problem statements: writing them, and the gates that look for leaks."""
