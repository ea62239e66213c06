"""Images of tasks: the build loop, repair rules, and rebuilding from a spec."""
