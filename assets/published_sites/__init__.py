"""Assets of published asv sites, partitioned by dashboard."""
