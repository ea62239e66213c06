"""From a request's body to a response: parse, validate, price, execute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.github.context import Failure, Rate, RequestContext

from .errors import QueryRefused, error_json
from .nodes import Scope
from .points import points_of
from .query import QUERY

if TYPE_CHECKING:
    from graphql import DocumentNode, GraphQLError, GraphQLSchema
    from graphql.language.ast import FragmentDefinitionNode, OperationDefinitionNode


@dataclass(frozen=True)
class Prepared:
    """A valid query with its price in points."""

    document: DocumentNode
    variables: Mapping[str, Any]
    operation: str | None
    points: int


def operation_name(body: Any) -> str:
    """The name of the operation in a request's *body*, empty when it has none or the query cannot be read."""
    from graphql import get_operation_ast

    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        return ""
    if isinstance(body.get("operationName"), str):
        return str(body["operationName"])
    document, _ = _parsed(body["query"])
    operation = get_operation_ast(document) if document else None
    return operation.name.value if operation and operation.name else ""


def prepare(asked: RequestContext, body: Any) -> Prepared | dict[str, Any]:
    """Return the query of a request's *body*, or the response that reports its error."""
    query = body.get("query") if isinstance(body, dict) else None
    if not isinstance(query, str):
        return {"errors": [{"message": "A query attribute must be specified and must be a string."}]}
    document, errors = _parsed(query)
    if document is None or errors:
        return {"errors": [error_json(error) for error in errors]}
    variables = body.get("variables") or {}
    wanted = body.get("operationName") or None
    try:
        operation, fragments = _parts(document, wanted)
        points = points_of(
            schema(),
            operation,
            fragments,
            _with_defaults(operation, variables),
            largest_page=asked.limits.page,
            most_nodes=asked.limits.graphql_nodes,
        )
    except QueryRefused as refusal:
        return refusal.answer()
    return Prepared(document, variables, wanted, points)


def execute(asked: RequestContext, prepared: Prepared, rate: Rate) -> dict[str, Any]:
    """Run the query; *rate* is the budget after its price was paid."""
    from graphql import ExecutionResult, execute_sync

    from .executor import Execution

    failure = _located(asked.failure, prepared)
    scope = Scope(asked, rate, prepared.points, failure)
    result: ExecutionResult = execute_sync(
        schema(),
        prepared.document,
        root_value=QUERY,
        context_value=scope,
        variable_values=dict(prepared.variables),
        operation_name=prepared.operation,
        execution_context_class=Execution,
    )
    answer: dict[str, Any] = {"data": result.data} if result.data is not None or not result.errors else {}
    for error in result.errors or ():
        _raise_own(error)
    if result.errors:
        answer["errors"] = [error_json(error) for error in result.errors]
    return answer


def _located(failure: Failure | None, prepared: Prepared) -> Failure | None:
    """Return *failure* with a path: by default, that of the last top-level field with subfields."""
    from graphql import FieldNode

    if failure is None or failure.path:
        return failure
    operation, _ = _parts(prepared.document, prepared.operation)
    fields = [
        selection
        for selection in operation.selection_set.selections
        if isinstance(selection, FieldNode) and selection.selection_set
    ]
    named = [
        field.alias.value if field.alias else field.name.value for field in fields if field.name.value != "rateLimit"
    ]
    return replace(failure, path=(named[-1],)) if named else None


def _raise_own(error: GraphQLError) -> None:
    """A fault of the sandbox is not passed off as an answer of GitHub's."""
    from graphql import GraphQLError

    from .errors import AnswerError

    cause = error.original_error
    if cause is not None and not isinstance(cause, AnswerError | GraphQLError):
        raise cause


@lru_cache(maxsize=256)
def _parsed(query: str) -> tuple[DocumentNode | None, tuple[GraphQLError, ...]]:
    from graphql import GraphQLError, parse, validate

    try:
        document = parse(query)
    except GraphQLError as error:
        return None, (error,)
    return document, tuple(validate(schema(), document))


def _parts(
    document: DocumentNode, wanted: str | None
) -> tuple[OperationDefinitionNode, dict[str, FragmentDefinitionNode]]:
    from graphql import FragmentDefinitionNode, get_operation_ast

    operation = get_operation_ast(document, wanted)
    if operation is None:
        raise QueryRefused("INVALID_OPERATION", "An operation name is required, and has to name one of the operations.")
    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    return operation, fragments


def _with_defaults(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> dict[str, Any]:
    from graphql import value_from_ast_untyped

    defaults = {
        variable.variable.name.value: value_from_ast_untyped(variable.default_value)
        for variable in operation.variable_definitions
        if variable.default_value is not None
    }
    return defaults | dict(variables)


SDL = Path(__file__).with_name("schema.graphql")


@cache
def schema() -> GraphQLSchema:
    """The executable schema, built once."""
    from graphql import build_schema

    return build_schema(SDL.read_text(encoding="utf-8"), assume_valid_sdl=True)
