"""Published asv sites, from a folder or over HTTP, as tables. What is missing or broken is named, never dropped."""
