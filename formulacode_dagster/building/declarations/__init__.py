"""What a repository declares at a commit about its build and benchmarks, read without running it."""
