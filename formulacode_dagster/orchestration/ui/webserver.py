"""Dagster's web server behind `UiGuard`, as `python -P -m formulacode_dagster.orchestration.ui.webserver`.

It takes the options of `dagster-webserver`; with `dev` before them those of `dagster dev`, which starts it in turn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from formulacode_dagster.models.errors import ConfigurationError
from resources.settings import read_settings

from .guard import UiGuard, UiPolicy

SERVER = (sys.executable, "-P", "-m", "formulacode_dagster.orchestration.ui.webserver")
"""The command; `-P`: a folder `resources` where it starts must not stand for ours."""
_DAGSTERS = "dagster_webserver"


def main(arguments: Sequence[str]) -> None:
    """Serve until ended; raises ConfigurationError, and SystemExit as click does."""
    if arguments[:1] == ["dev"]:
        _develop(arguments[1:])
    else:
        _serve(arguments)


def _serve(arguments: Sequence[str]) -> None:
    import dagster_webserver.cli

    # its types do not say that the name is there to be replaced: the command has no option for middleware
    cli: Any = dagster_webserver.cli
    settings = read_settings()
    policy = UiPolicy.of(settings.ui_hosts, settings.ui_login_header, settings.ui_users, settings.ui_proxies)
    create = cli.create_app_from_workspace_process_context

    def create_guarded(*given: Any, **named: Any) -> UiGuard:
        return UiGuard(create(*given, **named), policy)

    cli.create_app_from_workspace_process_context = create_guarded
    # the guard has to see a proxy's own address, not the one that it forwards for
    os.environ["FORWARDED_ALLOW_IPS"] = ""
    cli.cli(arguments, prog_name="dagster-webserver", auto_envvar_prefix="DAGSTER_WEBSERVER")


def _develop(arguments: Sequence[str]) -> None:
    from formulacode_dagster.orchestration.dagster_internals import dagster_dev

    dev = dagster_dev()
    start = dev.open_ipc_subprocess

    def start_guarded(command: Sequence[str], **named: Any) -> Any:
        is_served = _DAGSTERS in command
        return start([*SERVER, *command[command.index(_DAGSTERS) + 1 :]] if is_served else command, **named)

    # `dagster dev` has no option for the program of its web server
    dev.open_ipc_subprocess = start_guarded
    dev.dev_command(arguments, prog_name="dagster dev")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConfigurationError as error:
        sys.exit(str(error))
