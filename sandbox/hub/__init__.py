"""A Hugging Face Hub for datasets on localhost, kept in a folder."""

from .app import app

__all__ = ["app"]
