"""What a repository declares at a commit about building and benchmarking it, read without running it."""
