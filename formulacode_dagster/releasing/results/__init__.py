"""Results of agents: their runs are read, checked against a release, and summed."""
