"""`fc-data dashboards`: published asv sites as tables, and the commits at which their benchmarks take a step."""
