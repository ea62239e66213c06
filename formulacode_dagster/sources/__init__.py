"""Where a month comes from: git mirrors, GitHub, files, published asv sites, and the intake of pull requests."""
