"""How queries are executed: as the specification says, and fast enough for a month of a hundred repositories.

What GraphQL looks at anew for every field of every node is looked at once per type here, and what a query says of an
issue or pull request is kept until the repository changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

from graphql import (
    ExecutionContext,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLResolveInfo,
    is_leaf_type,
    located_error,
    print_ast,
)
from graphql.pyutils import Path

from sandbox.github.threads import Thread

from .errors import AnswerError
from .nodes import THREAD, Scope

_FOREIGN = ("timelineItems", "rateLimit", "viewer")
"""What depends on other repositories, or on the caller, is not kept."""
_VARIABLE = re.compile(r"\$(\w+)")
_SPREAD = re.compile(r"\.\.\.\s*(?!on\b)(\w+)")


class Execution(ExecutionContext):
    """One execution; its context value is a Scope."""

    context_value: Scope

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._keys: dict[tuple[int, ...], Hashable | None] = {}

    def execute_field(
        self, parent_type: GraphQLObjectType, source: Any, field_nodes: list[FieldNode], path: Path
    ) -> Any:
        """A field's value; a plain one, which is most of them, without further ado."""
        serialize = _plain(parent_type, field_nodes[0].name.value)
        if serialize is not None:
            value = source.get(field_nodes[0].name.value)
            if value is not None and not callable(value):
                return serialize(value)
        return super().execute_field(parent_type, source, field_nodes, path)

    def complete_object_value(
        self,
        return_type: GraphQLObjectType,
        field_nodes: list[FieldNode],
        info: GraphQLResolveInfo,
        path: Path,
        result: Any,
    ) -> Any:
        """What is asked of an object: an error where a fault says so, else from what is kept, or executed and kept."""
        failure = self.context_value.failure
        if failure is not None and tuple(path.as_list()) == failure.path:
            raise located_error(AnswerError(failure.type, failure.message), field_nodes, path.as_list())
        key = self._key(field_nodes) if THREAD in result else None
        if key is None or failure is not None:
            return super().complete_object_value(return_type, field_nodes, info, path, result)
        served, thread = result[THREAD]
        kept = served.tracker().told.setdefault(key, {})
        known = kept.get(thread.number)
        if known is None:
            before = len(self.collected_errors.errors)
            known = super().complete_object_value(return_type, field_nodes, info, path, result)
            if len(self.collected_errors.errors) == before and not _reaches_out(thread):
                kept[thread.number] = known
        return known

    def _key(self, field_nodes: list[FieldNode]) -> Hashable | None:
        """What is asked, as a key that is the same in every query that asks the same; None when it cannot be kept."""
        nodes = tuple(map(id, field_nodes))
        if nodes not in self._keys:
            asked = _text(field_nodes, self.fragments)
            names = _VARIABLE.findall(asked)
            values = repr([self.variable_values.get(name) for name in names])
            foreign = any(name in asked for name in _FOREIGN)
            self._keys[nodes] = None if foreign else (asked, values, self.context_value.asked.sees_private)
        return self._keys[nodes]


def _text(field_nodes: list[FieldNode], fragments: dict[str, FragmentDefinitionNode]) -> str:
    """The selections below *field_nodes* with all fragments they use."""
    parts = [print_ast(node.selection_set) for node in field_nodes if node.selection_set]
    used: dict[str, None] = {}
    pending = [*parts]
    while pending:
        for name in _SPREAD.findall(pending.pop()):
            if name not in used and name in fragments:
                used[name] = None
                pending.append(print_ast(fragments[name]))
                parts.append(pending[-1])
    return "\n".join(parts)


@cache
def _plain(parent: GraphQLObjectType, name: str) -> Callable[[Any], Any] | None:
    """Serializer of a scalar or enum without arguments; None for all other fields."""
    definition = parent.fields.get(name)
    if definition is None or definition.args:
        return None
    inner = definition.type.of_type if isinstance(definition.type, GraphQLNonNull) else definition.type
    return inner.serialize if is_leaf_type(inner) else None


def _reaches_out(thread: Thread) -> bool:
    """Whether what is told of *thread* depends on other repositories."""
    return any(reference.repository for reference in getattr(thread, "closes", ()))
