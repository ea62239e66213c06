"""An image registry on localhost, kept in a folder."""

from .app import app

__all__ = ["app"]
