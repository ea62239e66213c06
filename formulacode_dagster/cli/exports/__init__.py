"""Tasks as harnesses take them."""
