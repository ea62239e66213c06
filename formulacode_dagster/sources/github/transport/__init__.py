"""Transport to GitHub: tokens, pacing, retries, accounting. It knows nothing about the queries."""
