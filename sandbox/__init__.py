"""A GitHub, a model, a Hub and a registry on localhost, for the demo, the tests and offline trials."""
