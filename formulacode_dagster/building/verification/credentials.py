"""The verification `no_credentials`."""

from __future__ import annotations

from collections.abc import Mapping

from formulacode_dagster.models.image import Verification

from .facts import ImageFacts
from .results import result_of
from .scan import forms_in, secrets_in


def no_credentials(facts: ImageFacts, said: Mapping[str, str]) -> Verification:
    """Neither the files nor the image's configuration *said* (variables, labels, history) hold a credential.

    Text in the form of a credential is searched for in all files that neither the commit nor a wheel brought, the
    values of this machine's own secrets everywhere. No value is ever reported.
    """
    secrets = facts.scan.watch.secrets
    problems = [
        f"{area}: {path} holds {what}"
        for (area, path), credentials in facts.scan.credentials.items()
        for what in credentials
    ]
    for where, text in said.items():
        content = text.encode(errors="replace")
        problems += [f"{where} holds {what}" for what in (*secrets_in(content, secrets), *forms_in(content))]
    held = f"no token, key or password; none of {len(secrets)} secrets of this machine"
    return result_of("no_credentials", problems, held)
