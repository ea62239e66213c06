"""Sources of workloads beyond the suite at hand: one file per source."""
