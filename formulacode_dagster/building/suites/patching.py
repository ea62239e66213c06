"""Bringing a session to the code of a patch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

from formulacode_dagster.building.engines.protocol import Completed, Session
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .harness_output import describe

Build = Callable[[], Completed]

APPLY_SECONDS = 120.0
LOG_BYTES = 4000


def apply_patch(session: Session, patch: bytes, *, only: Iterable[str] = ()) -> None:
    """Apply *patch* to the checkout, or its changes to the files *only*.

    Raises ItemFailure (kind `oracle_does_not_apply`).
    """
    included = [f"--include={_literal(path)}" for path in only]
    # The ceiling keeps git from taking a repository around the session's folder for the patch's own.
    applied = session.run(
        ["git", "-c", "safe.directory=*", "apply", "--whitespace=nowarn", *included, "-"],
        timeout=APPLY_SECONDS,
        cwd=session.repository,
        environment={"GIT_CEILING_DIRECTORIES": str(PurePosixPath(session.repository).parent)},
        stdin=patch,
    )
    if not applied.ok:
        raise ItemFailure(
            FailureKind.ORACLE_DOES_NOT_APPLY,
            "the author's patch does not apply to the image's checkout",
            why=describe(applied).replace("\n", "; "),
            remedy="Check that the image contains the base commit",
            log_tail=describe(applied),
        )


def require_built(built: Completed, does_not_build: FailureKind, what: str) -> None:
    """Raise ItemFailure (*does_not_build*, or `timeout`) unless *what* was *built*."""
    if built.ok:
        return
    raise ItemFailure(
        FailureKind.TIMEOUT if built.timed_out else does_not_build,
        f"{what} {'takes too long to build' if built.timed_out else 'does not build'}",
        why=describe(built).partition("\n")[0],
        log_tail=f"{built.stdout[-LOG_BYTES:].decode(errors='replace')}\n{describe(built)}",
    )


def build_base(build: Build) -> None:
    """Build the unmodified package; retry once if that fails.

    Raises ItemFailure (`base_does_not_build`, `timeout`).
    """
    _require_base(_tried_again(build))


def build_oracle(build: Build, base: Build) -> None:
    """Build the package with the author's patch; retry once if that fails.

    The patch is at fault if the retry fails and a build of the *base* succeeds. Raises ItemFailure
    (`oracle_does_not_build`, `base_does_not_build`, `timeout`).
    """
    built = _tried_again(build)
    if not built.ok and not built.timed_out:
        _require_base(base())
    require_built(built, FailureKind.ORACLE_DOES_NOT_BUILD, "with the author's patch the package")


def _tried_again(build: Build) -> Completed:
    built = build()
    # a timeout proves no fault, and another attempt may retry
    return built if built.ok or built.timed_out else build()


def _require_base(built: Completed) -> None:
    require_built(built, FailureKind.BASE_DOES_NOT_BUILD, "the unmodified package")


def _literal(path: str) -> str:
    """Return a git pattern that matches only *path*."""
    return "".join(f"\\{sign}" if sign in "\\*?[" else sign for sign in path)
