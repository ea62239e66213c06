"""The symbolic filter and the classifier behind `classifications`."""
