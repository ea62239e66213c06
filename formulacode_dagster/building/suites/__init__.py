"""asv suites: which version of one is taken, what its files tell, and the harness that runs inside an image."""
