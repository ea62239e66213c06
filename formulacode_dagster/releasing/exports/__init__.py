"""Tasks of the dataset as folders that the harnesses of others run, and the grader that goes with them.

A folder's content comes only from the row; its container, from the image that the row names.
"""
