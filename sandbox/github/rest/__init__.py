"""REST: the endpoints that a client of this platform may want, with the field names of GitHub's OpenAPI description."""

from .endpoints import ENDPOINTS, rate_limit

__all__ = ["ENDPOINTS", "rate_limit"]
