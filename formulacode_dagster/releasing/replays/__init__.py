"""Released tasks measured again, from their rows and their images alone, on whatever machine this is."""
