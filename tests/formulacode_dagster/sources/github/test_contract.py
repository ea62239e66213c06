"""Our requests and reads, against GitHub's own published description (npm packages, no copy stored here).

Nothing has to be listed for it: queries and paths are found in `queries.py`, models by their base class, calls in the
code. What is added elsewhere, or added there and not as GitHub has it, makes a test fail.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import formulacode_dagster
from formulacode_dagster.sources.github import queries
from formulacode_dagster.sources.github.nodes import GitHubRecord

ROOT = Path(formulacode_dagster.__file__).parents[1]
HOME = ROOT / "formulacode_dagster/sources/github/queries.py"
CODE = [
    path
    for folder in ("formulacode_dagster", "assets", "resources")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != HOME
]


def needs_npm(test: Any) -> Any:
    """A test that fetches what GitHub publishes."""
    return pytest.mark.network(pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")(test))


SIZES = (1, 2, 30)
"""Number of searches, names or threads in one query here."""
PATHS = {name: value for name, value in vars(queries).items() if name.endswith("_PATH")}
PUBLIC = {name: value for name, value in vars(queries).items() if not name.startswith("_")}
BUILDERS = {
    name: value for name, value in PUBLIC.items() if inspect.isfunction(value) and value.__module__ == queries.__name__
}
QUERIES = {name: value for name, value in PUBLIC.items() if isinstance(value, str) and "query " in value}
QUERIES |= {f"{name}({size})": build(size) for name, build in BUILDERS.items() for size in SIZES}
GRAPHQL = re.compile(r"\b(?:query|mutation|fragment)\s+\w+[^{}]*\{|\bnodes\s*\{", re.DOTALL)
REST = re.compile(r"^/(?:repos|repositories|search|user|users|orgs|rate_limit)\b")


def models() -> list[type[GitHubRecord]]:
    """Every model of an answer."""
    import formulacode_dagster.sources.github as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    found: dict[type[GitHubRecord], None] = {}
    pending = [GitHubRecord]
    while pending:
        for model in pending.pop().__subclasses__():
            found[model] = None
            pending.append(model)
    # A generic one is known by what was made of it.
    return [model for model in found if not getattr(model, "__pydantic_generic_metadata__", {}).get("parameters")]


@pytest.fixture(scope="module")
def answers(published_schema):
    """The shapes of all objects in the answers to our queries."""
    from graphql import parse

    shapes = [selected(published_schema, parse(text)) for text in QUERIES.values()]
    return [object_id for shape in shapes for object_id in shape.objects()]


@pytest.fixture(scope="module")
def rest_answers(published_rest):
    """The shapes of all objects in the answers of our paths."""
    schemas = published_rest["components"]["schemas"]
    found = []
    for path in PATHS.values():
        content = operation(published_rest, path)["responses"]["200"]["content"]
        found += described(content["application/json"]["schema"], schemas).objects()
    return found


def operation(description: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """GET of *path*, with any names of parameters in the description; `{repository}` is `owner/name`."""
    known = {re.sub(r"\{\w+\}", "{}", template): template for template in description["paths"]}
    template = known.get(re.sub(r"\{\w*\}", "{}", path.replace("{repository}", "{owner}/{repo}")))
    assert template is not None, f"{path} is no path of GitHub's"
    return description["paths"][template]["get"]


@needs_npm
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_is_valid_against_github_s_schema(published_schema, name):
    from graphql import OperationDefinitionNode, parse, validate

    document = parse(QUERIES[name])
    assert validate(published_schema, document) == []
    operations = [definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)]
    assert [operation.name is not None for operation in operations] == [True]


@needs_npm
def test_every_model_reads_what_some_answer_holds(answers, rest_answers):
    homeless = {}
    for model in models():
        faults = [misfits(model, answer, camel=True) for answer in answers]
        faults += [misfits(model, answer, camel=False) for answer in rest_answers]
        if [] not in faults:
            homeless[model.__name__] = min(faults, key=len)
    assert homeless == {}


@needs_npm
@pytest.mark.parametrize("name", PATHS)
def test_every_path_is_one_of_github_s(published_rest, name):
    assert operation(published_rest, PATHS[name])["responses"]["200"]


@needs_npm
def test_every_parameter_of_a_rest_call_is_one_of_github_s(published_rest):
    parameters = published_rest["components"]["parameters"]
    strangers = []
    for path, call in calls("rest"):
        named = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
        if named not in PATHS or len(call.args) < 2 or not isinstance(call.args[1], ast.Dict):
            continue
        told = operation(published_rest, PATHS[named]).get("parameters", ())
        known = {
            parameters[parameter["$ref"].rpartition("/")[2]]["name"] if "$ref" in parameter else parameter["name"]
            for parameter in told
        }
        sent = {key.value for key in call.args[1].keys if isinstance(key, ast.Constant)}
        strangers += [f"{path.name}: {named}?{request}" for request in sent - known]
    assert strangers == []


@pytest.mark.slow
def test_nothing_is_asked_that_does_not_stand_in_queries():
    """A query or path is a name of `queries.py`, made by a function of it, or handed on under a name of its own."""
    strangers = []
    for path, call in [*calls("graphql"), *calls("rest")]:
        asked = call.args[0] if call.args else None
        if isinstance(asked, ast.Call):
            asked = asked.func.value if isinstance(asked.func, ast.Attribute) else asked.func
        name = asked.id if isinstance(asked, ast.Name) else ""
        if not (name in PUBLIC or (name.islower() and name not in {"str", "format"})):
            strangers.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert strangers == []


@pytest.mark.slow
def test_no_text_of_a_query_and_no_path_stands_elsewhere():
    strangers = []
    for path in CODE:
        nodes = list(ast.walk(tree_of(path)))
        passed = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        compared = (node for node in nodes if isinstance(node, ast.Call) and "startswith" in ast.dump(node.func))
        passed |= {id(argument) for node in compared for argument in node.args}
        for node in nodes:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in passed:
                continue
            if GRAPHQL.search(node.value) or (REST.match(node.value) and "github" in path.as_posix()):
                strangers.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.value[:60]!r}")
    assert strangers == []


@needs_npm
def test_every_name_that_is_read_without_a_model_is_in_some_answer(answers, rest_answers):
    told = {"data", "errors"} | {name for answer in (*answers, *rest_answers) for name in answer.below}
    strangers = []
    for path in code_with("queries import"):
        tree = tree_of(path)
        asks = any(isinstance(node, ast.ImportFrom) and node.module == "queries" for node in ast.walk(tree))
        for node in ast.walk(tree) if asks else ():
            key: ast.expr | None = None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                key = node.slice
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                key = node.args[0] if node.args and "headers" not in ast.dump(node.func) else None
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value not in told:
                strangers.append(f"{path.relative_to(ROOT)}:{node.lineno}: {key.value}")
    assert strangers == []


def test_requests_are_made_by_the_client_alone():
    makers = {
        path.name
        for path in (ROOT / "formulacode_dagster/sources/github").rglob("*.py")
        if "build_request(" in path.read_text(encoding="utf-8")
    }
    assert len(makers) == 1


def tree_of(path: Path) -> ast.Module:
    """The code of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def calls(method: str) -> Iterator[tuple[Path, ast.Call]]:
    """Every call of *method* in the code, by any object."""
    for path in code_with(f".{method}("):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                yield path, node


def code_with(text: str) -> Iterator[Path]:
    """The modules that have *text* in them: reading and walking all takes seconds."""
    return (path for path in CODE if text in path.read_text(encoding="utf-8"))


TEXT = {"String", "ID", "URI", "GitObjectID", "HTML"}


@dataclass
class Shape:
    """Names and what is below them; a leaf has none. `kind` is text, number, truth, moment, object or list."""

    kind: str
    below: dict[str, Shape] = field(default_factory=dict)
    always: set[str] = field(default_factory=set)
    """Names that are never left out, as far as the description says so."""

    def objects(self) -> Iterator[Shape]:
        """This shape and all below, as far as they are objects."""
        if self.kind == "object":
            yield self
        for part in self.below.values():
            yield from part.objects()


def selected(schema: Any, document: Any) -> Shape:
    """Selection of the only operation of *document*."""
    from graphql import FragmentDefinitionNode, OperationDefinitionNode

    fragments = {
        definition.name.value: definition
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    (operation,) = (
        definition for definition in document.definitions if isinstance(definition, OperationDefinitionNode)
    )
    root = Shape("object")
    _select(schema, schema.query_type, operation.selection_set, fragments, root)
    return root


def _select(schema: Any, parent: Any, selection_set: Any, fragments: Mapping[str, Any], shape: Shape) -> None:
    from graphql import FieldNode, FragmentSpreadNode, get_named_type, get_nullable_type, is_enum_type, is_list_type

    for selection in selection_set.selections:
        if not isinstance(selection, FieldNode):
            part = fragments[selection.name.value] if isinstance(selection, FragmentSpreadNode) else selection
            owner = schema.type_map[part.type_condition.name.value] if part.type_condition else parent
            _select(schema, owner, part.selection_set, fragments, shape)
            continue
        name = selection.alias.value if selection.alias else selection.name.value
        if selection.name.value == "__typename":
            shape.below[name] = Shape("text")
            continue
        declared = parent.fields[selection.name.value].type
        named = get_named_type(declared)
        if selection.selection_set:
            inner = shape.below.get(name, Shape("object"))
            target = inner.below.setdefault("[]", Shape("object")) if inner.kind == "list" else inner
            if is_list_type(get_nullable_type(declared)) and inner.kind != "list":
                inner = Shape("list", {"[]": Shape("object")})
                target = inner.below["[]"]
            _select(schema, named, selection.selection_set, fragments, target)
            shape.below[name] = inner
        else:
            kind = "text" if is_enum_type(named) or named.name in TEXT else _SCALARS.get(named.name, named.name)
            shape.below[name] = Shape(kind)


_SCALARS = {"Int": "number", "Float": "number", "Boolean": "truth", "DateTime": "moment", "GitTimestamp": "moment"}
_JSON = {"string": "text", "integer": "number", "number": "number", "boolean": "truth"}


def described(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 6) -> Shape:
    """Fields of an OpenAPI *schema*; alternatives are united. *schemas* are those that references name."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if schema.get("type") == "array":
        return Shape("list", {"[]": described(schema["items"], schemas, depth)})
    shape = Shape("object", always=set(schema.get("required", ())))
    for name, inner in schema.get("properties", {}).items() if depth else ():
        shape.below[name] = described(inner, schemas, depth - 1)
    for part in (*schema.get("allOf", ()), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        other = described(part, schemas, depth)
        shape.below |= other.below
        shape.always |= other.always if part in schema.get("allOf", ()) else set()
    if not shape.below and schema.get("type") in _JSON:
        is_moment = schema.get("format") == "date-time"
        return Shape("moment" if is_moment else _JSON[schema["type"]])
    return shape


def misfits(annotation: Any, shape: Shape, *, camel: bool, where: str = "") -> list[str]:
    """Where *annotation*, as of a model's field or a model, reads what *shape* does not hold. *camel*: names are.

    What a model can do without must be somewhere, but not in every answer that the model is part of.
    """
    annotation = _without_none(annotation)
    if isinstance(annotation, type) and issubclass(annotation, GitHubRecord):
        if shape.kind != "object":
            return [f"{where} is a {shape.kind}"]
        found = []
        for name, known in annotation.model_fields.items():
            read = (known.alias or name) if camel else name
            if read not in shape.below:
                if where and not known.is_required():
                    continue
                found.append(f"{where}.{read} is not there")
            elif not camel and known.is_required() and read not in shape.always:
                found.append(f"{where}.{read} may be left out")
            else:
                found += misfits(known.annotation, shape.below[read], camel=camel, where=f"{where}.{read}")
        return found
    origin = typing.get_origin(annotation)
    if origin in (tuple, list, Sequence):
        if shape.kind != "list":
            return [f"{where} is a {shape.kind}"]
        return misfits(typing.get_args(annotation)[0], shape.below["[]"], camel=camel, where=f"{where}[]")
    wanted = {str: ("text",), int: ("number",), float: ("number",), bool: ("truth",), datetime: ("moment", "text")}
    if annotation in wanted and shape.kind not in wanted[annotation]:
        return [f"{where} is a {shape.kind}"]
    return []


def _without_none(annotation: Any) -> Any:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        (annotation,) = (argument for argument in typing.get_args(annotation) if argument is not type(None))
    return annotation
