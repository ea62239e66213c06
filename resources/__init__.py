"""Resources of the assets: configuration, credentials and lifecycle of one outside system per file."""
