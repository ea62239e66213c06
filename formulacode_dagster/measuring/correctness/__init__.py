"""The repository's own tests before and after the patch, and the values that benchmarks return."""
