"""Reports of a month: the funnel, costs, charts."""
