"""The commands of `fc-data`, one file each, named like it."""
