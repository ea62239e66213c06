"""Every GraphQL query and REST path that is sent to GitHub, and nothing else.

The queries are validated against GitHub's published schema by a test. `first` sizes of nested connections are free
(points count connections, not nodes), but large ones make GitHub answer 502: rare overflows are completed by paging.
"""

from __future__ import annotations

CODE_SEARCH_PATH = "/search/code"
RATE_LIMIT_PATH = "/rate_limit"
USER_PATH = "/user"
INSTALLATION_PATH = "/installation/repositories"
PULL_REQUEST_PATH = "/repos/{repository}/pulls/{number}"
PULL_REQUEST_FILES_PATH = "/repos/{repository}/pulls/{number}/files"
TIMELINE_PATH = "/repos/{repository}/issues/{number}/timeline"

_RATE_LIMIT = "rateLimit { cost remaining resetAt }"
_PAGE_INFO = "pageInfo { hasNextPage endCursor }"
_LABELS = f"totalCount {_PAGE_INFO} nodes {{ name }}"
_CLOSING_ISSUES = f"totalCount {_PAGE_INFO} nodes {{ ...issueFields }}"

_REPOSITORY_FIELDS = """
fragment repositoryFields on Repository {
  databaseId
  id
  nameWithOwner
  isFork
  isArchived
  isEmpty
  isPrivate
  stargazerCount
  diskUsage
  archivedAt
  description
  primaryLanguage { name }
  defaultBranchRef { name }
}
"""

_ISSUE_FIELDS = """
fragment issueFields on Issue {
  id
  number
  title
  body
  createdAt
  lastEditedAt
  author { login }
  repository { nameWithOwner }
}
"""

REPOSITORIES_BY_ID = f"""
query RepositoriesById($ids: [ID!]!) {{
  nodes(ids: $ids) {{ ... on Repository {{ ...repositoryFields }} }}
  {_RATE_LIMIT}
}}
{_REPOSITORY_FIELDS}"""
"""Up to 100 repositories by node id, 1 point; a vanished one is null, with a NOT_FOUND error at its path."""


def repositories_by_name(count: int) -> str:
    """Ask for *count* repositories `$owner0`/`$name0` … by any name they ever had, as `r0` …; 1 point for up to 100."""
    variables = ", ".join(f"$owner{index}: String!, $name{index}: String!" for index in range(count))
    looked_up = "".join(
        f"\n  r{index}: repository(owner: $owner{index}, name: $name{index}, followRenames: true) "
        "{ ...repositoryFields }"
        for index in range(count)
    )
    return f"""
query RepositoriesByName({variables}) {{{looked_up}
  {_RATE_LIMIT}
}}
{_REPOSITORY_FIELDS}"""


def merged_counts(searches: int) -> str:
    """Ask for the sizes of as many *searches* (`$q0`, `$q1` …) and for the repositories `$ids`, in that order.

    Each search is a connection of one request, and 100 requests are a point; `nodes` is none and costs nothing.
    https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
    """
    variables = "".join(f", $q{index}: String!" for index in range(searches))
    counts = "".join(
        f"\n  c{index}: search(query: $q{index}, type: ISSUE, first: 1) {{ issueCount }}" for index in range(searches)
    )
    return f"""
query MergedCounts($ids: [ID!]!{variables}) {{
  nodes(ids: $ids) {{ ... on Repository {{ databaseId nameWithOwner archivedAt isEmpty isPrivate }} }}{counts}
  {_RATE_LIMIT}
}}
"""


def newest_merges(count: int) -> str:
    """Ask *count* repositories `$owner0`/`$name0` … for 100 merges behind `$after0` …, as `r0` …; 1 point for 100.

    Merges that were updated last come first.

    The list is the database's, not the search index's.
    """
    variables = ", ".join(f"$owner{n}: String!, $name{n}: String!, $after{n}: String" for n in range(count))
    order = "states: MERGED, first: 100, orderBy: {field: UPDATED_AT, direction: DESC}"
    lists = "".join(
        f"\n  r{n}: repository(owner: $owner{n}, name: $name{n}, followRenames: true) "
        f"{{ pullRequests({order}, after: $after{n}) {{ {_PAGE_INFO} nodes {{ number mergedAt updatedAt }} }} }}"
        for n in range(count)
    )
    return f"""
query NewestMerges({variables}) {{{lists}
  {_RATE_LIMIT}
}}
"""


_PULL_REQUEST_FIELDS = f"""
fragment pullRequestFields on PullRequest {{
  id
  number
  title
  body
  author {{ login }}
  createdAt
  mergedAt
  baseRefName
  headRefOid
  mergeCommit {{ oid }}
  changedFiles
  commits {{ totalCount }}
  repository {{ databaseId nameWithOwner }}
  labels(first: 30) {{ {_LABELS} }}
  closingIssuesReferences(first: 10) {{ {_CLOSING_ISSUES} }}
}}
{_ISSUE_FIELDS}"""

_MERGED_PAGE = f"""
fragment mergedPage on SearchResultItemConnection {{
  issueCount
  {_PAGE_INFO}
  nodes {{ ...pullRequestFields }}
}}
{_PULL_REQUEST_FIELDS}"""


def merged_pull_requests(searches: int) -> str:
    """A page of each of *searches* (`$q0`, `$first0`, `$after0` …) with the size of the whole, as `s0` ….

    Costs a hundredth of a point per search and two per requested pull request: 2 points for 100, over any number of
    searches. A search never shows more than 1,000.
    """
    variables = ", ".join(f"$q{n}: String!, $first{n}: Int!, $after{n}: String" for n in range(searches))
    pages = "".join(
        f"\n  s{n}: search(query: $q{n}, type: ISSUE, first: $first{n}, after: $after{n}) {{ ...mergedPage }}"
        for n in range(searches)
    )
    return f"""
query MergedPullRequests({variables}) {{{pages}
  {_RATE_LIMIT}
}}
{_MERGED_PAGE}"""


PULL_REQUEST_BY_NAME = f"""
query PullRequestByName($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name, followRenames: true) {{
    pullRequest(number: $number) {{ ...pullRequestFields }}
  }}
  {_RATE_LIMIT}
}}
{_PULL_REQUEST_FIELDS}"""
"""One pull request by any name its repository ever had, 1 point."""


def _following(name: str, connection: str, *types: str, fragments: str = "") -> str:
    """The query *name*: a page of *connection* of the node `$id`, of one of *types*, behind `$after`; 1 point."""
    parts = " ".join(f"... on {kind} {{ {connection} }}" for kind in types)
    return f"""
query {name}($id: ID!, $after: String) {{
  node(id: $id) {{ {parts} }}
  {_RATE_LIMIT}
}}
{fragments}"""


PULL_REQUEST_LABELS = _following(
    "PullRequestLabels", f"labels(first: 100, after: $after) {{ {_LABELS} }}", "PullRequest"
)
"""The labels that did not fit in the window's page."""

PULL_REQUEST_CLOSING_ISSUES = _following(
    "PullRequestClosingIssues",
    f"closingIssuesReferences(first: 100, after: $after) {{ {_CLOSING_ISSUES} }}",
    "PullRequest",
    fragments=_ISSUE_FIELDS,
)
"""The closing issues that did not fit in the window's page."""

BODY_VERSIONS = f"""
query BodyVersions($ids: [ID!]!, $after: String) {{
  nodes(ids: $ids) {{
    ... on Node {{ id }}
    ... on Issue {{ userContentEdits(first: 100, after: $after) {{ ...versions }} }}
    ... on PullRequest {{ userContentEdits(first: 100, after: $after) {{ ...versions }} }}
    ... on IssueComment {{ userContentEdits(first: 100, after: $after) {{ ...versions }} }}
  }}
  {_RATE_LIMIT}
}}
fragment versions on UserContentEditConnection {{ totalCount {_PAGE_INFO} nodes {{ editedAt diff }} }}
"""
"""The histories of up to 100 bodies, 1 point; asked only of those that were edited after the merge."""

_NAMED_THREAD = """
fragment namedThread on ReferencedSubject {
  ... on Issue { number createdAt repository { nameWithOwner } }
  ... on PullRequest { number createdAt repository { nameWithOwner } }
}
"""

_COMMENTS = f"""
fragment comments on IssueCommentConnection {{
  totalCount {_PAGE_INFO} nodes {{ id body createdAt lastEditedAt author {{ login }} }}
}}
"""

_EVENTS = f"""
  totalCount: filteredCount
  {_PAGE_INFO}
  nodes {{
    __typename
    ... on CrossReferencedEvent {{ createdAt source {{ ...namedThread }} }}
    ... on ConnectedEvent {{ createdAt source {{ ...namedThread }} subject {{ ...namedThread }} }}
    ... on RenamedTitleEvent {{ createdAt previousTitle }}
  }}
"""

_EVENT_TYPES = "itemTypes: [CROSS_REFERENCED_EVENT, CONNECTED_EVENT, RENAMED_TITLE_EVENT]"

_THREAD = f"""
  id
  number
  title
  body
  createdAt
  lastEditedAt
  author {{ login }}
  repository {{ nameWithOwner isPrivate }}
  comments(first: 100) {{ ...comments }}
  timelineItems(first: 100, {_EVENT_TYPES}) {{ {_EVENTS} }}
"""


def threads_query(count: int) -> str:
    """The query for *count* issues or pull requests by name, as variables `owner0`, `name0`, `number0`, `owner1`, ….

    Each counts as an issue's two connections of 100 and a pull request's three: 50 cost 3 points. A missing thread is
    null, with a NOT_FOUND error at its path.
    """
    places = range(count)
    variables = ", ".join(f"$owner{n}: String!, $name{n}: String!, $number{n}: Int!" for n in places)
    asked = "\n".join(
        f"  t{n}: repository(owner: $owner{n}, name: $name{n}, followRenames: true) "
        f"{{ thread: issueOrPullRequest(number: $number{n}) {{ ...thread }} }}"
        for n in places
    )
    return f"""
query Threads({variables}) {{
{asked}
  {_RATE_LIMIT}
}}
fragment thread on IssueOrPullRequest {{
  __typename
  ... on Issue {{ {_THREAD} }}
  ... on PullRequest {{
    {_THREAD}
    mergedAt
    closingIssuesReferences(first: 100) {{
      totalCount {_PAGE_INFO} nodes {{ number createdAt repository {{ nameWithOwner }} }}
    }}
  }}
}}
{_COMMENTS}{_NAMED_THREAD}"""


THREAD_COMMENTS = _following(
    "ThreadComments", "comments(first: 100, after: $after) { ...comments }", "Issue", "PullRequest", fragments=_COMMENTS
)
"""Comments beyond the thread's first page, 1 point per page."""

THREAD_EVENTS = _following(
    "ThreadEvents",
    f"timelineItems(first: 100, after: $after, {_EVENT_TYPES}) {{ {_EVENTS} }}",
    "Issue",
    "PullRequest",
    fragments=_NAMED_THREAD,
)
"""Events beyond the thread's first page, 1 point per page."""

PROBE = "query Probe { viewer { login } rateLimit { cost remaining } }"
"""Asks GitHub, if it is up, whose token it is; 1 point."""
