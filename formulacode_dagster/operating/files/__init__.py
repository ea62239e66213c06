"""Files of this machine: written whole or not at all, and those that come with the platform."""
