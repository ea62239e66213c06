"""The stage `environments`: plans, and attempts at a lock where the declarations have none."""
