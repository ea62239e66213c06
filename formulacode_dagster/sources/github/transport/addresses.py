"""Addresses of one GitHub, derived from that of its REST API: the public one, one with data residency, a server."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

PUBLIC_API = "https://api.github.com"
PUBLIC_WEB = "https://github.com"
PUBLIC, LOCAL = "github.com", "localhost"
_LOCAL_NAMES = (LOCAL, "::1", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
SERVER_PATH = "/api/v3"
"""Root of REST on GitHub Enterprise Server; GraphQL is next to it, at `/api/graphql`."""


@dataclass(frozen=True)
class GitHubAddresses:
    """Where REST, GraphQL, and the pages and repositories are."""

    rest: str
    graphql: str
    web: str

    @classmethod
    def of(cls, api_url: str) -> GitHubAddresses:
        """Derive them from GITHUB_API_URL; pages are the public ones if the address is that of neither kind."""
        rest = api_url.rstrip("/")
        if rest.endswith(SERVER_PATH):
            root = rest.removesuffix(SERVER_PATH)
            return cls(rest, f"{root}/api/graphql", root)
        address = urlsplit(rest)
        host = address.hostname or ""
        is_subdomain = host.startswith("api.") and host.endswith(".ghe.com")
        web = f"{address.scheme}://{host.removeprefix('api.')}" if is_subdomain else PUBLIC_WEB
        return cls(rest, f"{rest}/graphql", web)

    @property
    def name(self) -> str:
        """The GitHub's name, without a port: `github.com`, a host, or LOCAL for any on this machine."""
        host = urlsplit(self.rest).hostname or ""
        return LOCAL if host in _LOCAL_NAMES or host.startswith("127.") else host.removeprefix("api.")

    @property
    def host(self) -> str:
        """The host that links to pages name."""
        return urlsplit(self.web).netloc
