"""What leaves the house: task records, the dataset and its card, the Hub, the registry, and their gates."""
