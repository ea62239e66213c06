"""The fixtures of this room, which others use too."""

from tests.support.declarations import index, pull_request, reader_of, resolver, tree_of

__all__ = ["index", "pull_request", "reader_of", "resolver", "tree_of"]
