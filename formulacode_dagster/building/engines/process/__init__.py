"""The engine of a laptop without Docker: folders of this machine."""
