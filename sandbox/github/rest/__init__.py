"""REST: the endpoints that a client of this platform may want, with the field names of GitHub's OpenAPI description."""

from .endpoints import ENDPOINTS

__all__ = ["ENDPOINTS"]
