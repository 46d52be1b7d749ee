"""Licences as publishers write them."""

import pytest

from factory.data.licence import PERMISSIVE, spdx, terms

BY = (
    "This is an open-access article distributed under the terms of the Creative Commons "
    "Attribution License, which permits unrestricted use, distribution, and reproduction"
)
CC0 = "The work is made available under the Creative Commons CC0 public domain dedication."


@pytest.mark.parametrize(
    ("addresses", "text", "expected"),
    [
        (["http://creativecommons.org/licenses/by/4.0/"], BY, "CC-BY-4.0"),
        (["https://creativecommons.org/licenses/by/3.0"], "", "CC-BY-3.0"),
        (["http://creativecommons.org/licenses/by/4.0/"] * 2, BY, "CC-BY-4.0"),
        ([], BY, "LicenseRef-CC-BY"),
        ([], f"{BY} (http://creativecommons.org/licenses/by/2.0)", "CC-BY-2.0"),
        ([], "Creative Commons Attribution 4.0 International License", "CC-BY-4.0"),
        ([], CC0, "CC0-1.0"),
        (["https://creativecommons.org/publicdomain/zero/1.0/"], CC0, "CC0-1.0"),
        (["http://creativecommons.org/publicdomain/mark/1.0/"], "", "CC-PDM-1.0"),
        ([], "terms of the Creative Commons Public Domain Declaration, which", "CC-PDDC"),
        (["http://creativecommons.org/licenses/by-nc/4.0/"], "", "CC-BY-NC-4.0"),
        (["http://creativecommons.org/licenses/by/"], "", "LicenseRef-CC-BY"),
        ([], "", None),
        ([], "All rights reserved.", None),
        ([], "Creative Commons Attribution Non-Commercial License", None),
        ([], "Creative Commons Attribution-NonCommercial-NoDerivs 3.0", None),
        ([], "Creative Commons Attribution License, for noncommercial use", None),
        (["http://creativecommons.org/licenses/by/4.0/"], "for non-commercial use only", None),
        (
            [
                "http://creativecommons.org/licenses/by/4.0/",
                "http://creativecommons.org/licenses/by/3.0/",
            ],
            "",
            None,
        ),
        (["https://example.org/licenses/by/4.0/"], "", None),
        ([], "an Open Access article in the spirit of the Public Library of Science", None),
    ],
)
def test_one_licence_or_none(addresses: list[str], text: str, expected: str | None) -> None:
    assert spdx(addresses, text) == expected


@pytest.mark.parametrize("name", ["CC-BY-4.0", "CC-BY-2.5", "CC0-1.0", "LicenseRef-CC-BY"])
def test_permissive(name: str) -> None:
    assert PERMISSIVE.fullmatch(name)


@pytest.mark.parametrize("name", ["CC-BY-NC-4.0", "CC-BY-SA-4.0", "CC-BY-ND-4.0", "MIT"])
def test_not_permissive(name: str) -> None:
    assert not PERMISSIVE.fullmatch(name)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CC-BY-4.0", ("attribution",)),
        ("CC-BY-SA-3.0", ("attribution", "share-alike")),
        ("CC-BY-4.0 AND CC-BY-NC-ND-4.0", ("attribution", "non-commercial", "no derivatives")),
        ("CC0-1.0 AND CC-PDDC", ()),
        ("ISC-LICENSE AND MIT", ()),
        ("", ()),
    ],
)
def test_what_a_licence_asks_for(expression: str, expected: tuple[str, ...]) -> None:
    assert terms(expression) == expected
