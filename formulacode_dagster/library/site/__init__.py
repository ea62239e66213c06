"""A release as pages for people: static files that work from a folder. Every text of a row is a stranger's."""
