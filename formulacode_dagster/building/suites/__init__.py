"""asv suites: their versions, their content, and the harness that runs inside an image."""
