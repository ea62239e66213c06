"""Computes a query's cost by GitHub's published formula, and checks GitHub's rules for connections.

Every connection needs one request per node of the parent connection, each assumed to be full; the requests are added
up, divided by 100 and rounded. Connections whose count only is selected need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import QueryRefused

if TYPE_CHECKING:
    from graphql import FieldNode, GraphQLNamedType, GraphQLSchema, SelectionSetNode
    from graphql.language.ast import FragmentDefinitionNode, OperationDefinitionNode

REQUESTS_PER_POINT = 100


def points_of(
    schema: GraphQLSchema,
    operation: OperationDefinitionNode,
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: Mapping[str, Any],
    *,
    largest_page: int,
    most_nodes: int,
) -> int:
    """Return the cost of *operation* to the primary budget.

    Raises QueryRefused for pages that are unbounded or too large, and too many nodes.
    """
    query = schema.query_type
    if query is None:
        return 1
    pricing = _Pricing(schema, fragments, variables, largest_page)
    requests, nodes = pricing.walk([(query, operation.selection_set)], 1)
    if nodes > most_nodes:
        raise QueryRefused(
            "MAX_NODE_LIMIT_EXCEEDED",
            f"This query requests up to {nodes:,} possible nodes which exceeds the maximum limit of {most_nodes:,}.",
        )
    return max(1, (requests + REQUESTS_PER_POINT // 2) // REQUESTS_PER_POINT)


Place = tuple["GraphQLNamedType", "SelectionSetNode"]


@dataclass(frozen=True)
class _Pricing:
    schema: GraphQLSchema
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]
    largest_page: int

    def walk(self, places: Sequence[Place], times: int) -> tuple[int, int]:
        """Requests and nodes below *places*, the same object's selections, each fetched *times* times."""
        from graphql import get_named_type

        requests = nodes = 0
        for (parent, _), fields in self._fields(places).items():
            definition = getattr(parent, "fields", {}).get(fields[0].name.value)
            if definition is None:
                continue
            inner = get_named_type(definition.type)
            below = [(inner, field.selection_set) for field in fields if field.selection_set]
            multiplier = times
            if inner.name.endswith("Connection"):
                size = self._page_size(fields[0], below)
                if size is not None:
                    requests += times
                    nodes += times * size
                    multiplier = times * size
            elif fields[0].name.value == "nodes" and parent is self.schema.query_type:
                multiplier = times * max(1, len(self._argument(fields[0], "ids") or ()))
                nodes += multiplier
            more_requests, more_nodes = self.walk(below, multiplier)
            requests, nodes = requests + more_requests, nodes + more_nodes
        return requests, nodes

    def _fields(self, places: Sequence[Place]) -> dict[tuple[GraphQLNamedType, str], list[FieldNode]]:
        """Return selections by type and response key, so that duplicates are counted once."""
        found: dict[tuple[GraphQLNamedType, str], list[FieldNode]] = {}
        for parent, selections in places:
            for owner, field in self._flat(parent, selections):
                key = field.alias.value if field.alias else field.name.value
                found.setdefault((owner, key), []).append(field)
        return found

    def _flat(
        self, parent: GraphQLNamedType, selections: SelectionSetNode
    ) -> Iterator[tuple[GraphQLNamedType, FieldNode]]:
        from graphql import FieldNode, FragmentSpreadNode, InlineFragmentNode

        for selection in selections.selections:
            if isinstance(selection, FieldNode):
                yield parent, selection
                continue
            fragment: Any = selection
            if isinstance(selection, FragmentSpreadNode):
                fragment = self.fragments[selection.name.value]
            elif not isinstance(selection, InlineFragmentNode):
                continue
            condition = fragment.type_condition
            owner = self.schema.get_type(condition.name.value) if condition else parent
            yield from self._flat(owner or parent, fragment.selection_set)

    def _page_size(self, field: FieldNode, below: Sequence[Place]) -> int | None:
        name = field.name.value
        size = self._argument(field, "first")
        if size is not None:
            if size > self.largest_page:
                raise QueryRefused(
                    "EXCESSIVE_PAGINATION",
                    f"Requesting {size} records on the `{name}` connection exceeds the `first` limit of "
                    f"{self.largest_page} records.",
                )
            if size < 1 and name != "search":
                raise QueryRefused("INVALID_PAGINATION", f"`first` on the `{name}` connection cannot be less than 1.")
            return int(size)
        if "nodes" in {field.name.value for place in below for _, field in self._flat(*place)}:
            raise QueryRefused(
                "MISSING_PAGINATION_BOUNDARIES",
                f"You must provide a `first` or `last` value to properly paginate the `{name}` connection.",
            )
        return None

    def _argument(self, field: FieldNode, name: str) -> Any:
        from graphql import value_from_ast_untyped

        for argument in field.arguments:
            if argument.name.value == name:
                return value_from_ast_untyped(argument.value, dict(self.variables))
        return None
