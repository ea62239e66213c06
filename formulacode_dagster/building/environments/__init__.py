"""The stage `environments`: plans, and attempts at a lock if the declarations yield none."""
