"""Which images, containers and folders go, so that disks keep within bounds."""
