"""What a change can be timed by, where the suite at hand says nothing of it: one file a source of workloads."""
