"""Published asv sites as tables, from a folder or over HTTP. Missing and corrupt files are reported, never dropped."""
