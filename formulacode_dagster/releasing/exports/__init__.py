"""Tasks of the dataset as folders that the harnesses of others run, and the grader that goes with them.

What a folder holds comes from the row alone; what it runs in, from the image that the row names.
"""
