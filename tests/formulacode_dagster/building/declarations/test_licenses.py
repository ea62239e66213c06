from __future__ import annotations

from collections.abc import Mapping

import pytest

from formulacode_dagster.building.declarations.licenses import license_of
from formulacode_dagster.building.declarations.tree import Tree
from tests.support.declarations import BASE, DictReader

MIT = """Copyright (c) 2020 Acme
Permission is hereby granted, free of charge, to any person obtaining a copy
of this software, to deal in the Software without restriction, including"""
BSD = """Redistribution and use in source and binary forms, with or without modification, are permitted:
1. Redistributions of source code must retain the above copyright
   notice."""
BSD_3 = f"{BSD} 3. Neither the name may be used to endorse or\n promote products derived from this software"
APACHE = "                                 Apache License\n                           Version 2.0, January 2004"
LGPL = "GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\nversion 3 of the GNU General Public License"
CLASSIFIERS = 'classifiers = ["License :: OSI Approved :: {}"]'


def told(files: Mapping[str, str], folder: str = ".") -> str:
    return license_of(Tree(DictReader({BASE: files}), BASE), folder)


@pytest.mark.parametrize(
    ("text", "license"),
    [(MIT, "MIT"), (BSD, "BSD-2-Clause"), (BSD_3, "BSD-3-Clause"), (APACHE, "Apache-2.0"), (LGPL, "LGPL-3.0-only")],
)
@pytest.mark.parametrize("name", ["LICENSE", "LICENCE.txt", "COPYING", "license.md"])
def test_a_license_is_known_by_its_text(name: str, text: str, license: str) -> None:
    assert told({name: text}) == license


@pytest.mark.parametrize(
    ("metadata", "license"),
    [
        ('[project]\nlicense = "mit or apache-2.0"', "MIT OR Apache-2.0"),
        ('[project]\nlicense = {text = "BSD-3-Clause"}', "BSD-3-Clause"),
        ('[tool.poetry]\nlicense = "GPL-3.0-or-later"', "GPL-3.0-or-later"),
        ('[project]\nlicense = "BSD"', ""),
        ('[project]\nlicense = {file = "LICENSE"}', ""),
        ("[project]\nlicense = 3", ""),
        ("[project", ""),
        (f"[project]\n{CLASSIFIERS.format('MIT License')}", "MIT"),
        (f"[project]\n{CLASSIFIERS.format('BSD License')}", ""),
    ],
)
def test_a_license_is_known_by_what_the_metadata_says(metadata: str, license: str) -> None:
    assert told({"pyproject.toml": metadata}) == license


def test_spdx_metadata_precedes_license_text_and_classifiers() -> None:
    expression = {"pyproject.toml": '[project]\nlicense = "MIT AND BSD-3-Clause"', "LICENSE": MIT}
    assert told(expression) == "MIT AND BSD-3-Clause"
    assert told({"setup.cfg": "License :: OSI Approved :: Apache Software License", "LICENSE": MIT}) == "MIT"


def test_two_files_are_two_licenses_and_one_that_nobody_knows_is_none() -> None:
    assert told({"LICENSE-MIT": MIT, "LICENSE-APACHE": APACHE}) == "Apache-2.0 AND MIT"
    assert told({"LICENSE": "Ask us.", "README.md": MIT}) == ""


def test_a_package_folder_has_its_own_license_or_the_repositorys() -> None:
    files = {"LICENSE": MIT, "python/setup.py": "", "other/LICENSE": APACHE}
    assert told(files, "python") == "MIT"
    assert told(files, "other") == "Apache-2.0"
