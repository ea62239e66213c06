"""Probes of each task through its exported grader: the author's patch, and patches that must get nothing."""
