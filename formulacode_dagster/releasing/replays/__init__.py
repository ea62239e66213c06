"""Released tasks measured again, only from their rows and images, on any machine."""
