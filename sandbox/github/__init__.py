"""A GitHub on localhost, over a folder of bare repositories: GraphQL and REST, with GitHub's limits."""

from .app import app
from .context import Account
from .faults import Fault, Faults, ScriptedFault
from .limits import Limits, Resource

__all__ = ["Account", "Fault", "Faults", "Limits", "Resource", "ScriptedFault", "app"]
