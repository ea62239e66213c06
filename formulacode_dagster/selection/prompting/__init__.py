"""What every stage that asks a model shows it texts of strangers with."""
