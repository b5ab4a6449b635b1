"""What a license allows, in the spellings that data sets use."""

import pytest

from releases.snapshot.licenses import license_of

pytestmark = pytest.mark.pure

CC = "https://creativecommons.org"


@pytest.mark.parametrize(
    ("license", "url", "name"),
    [
        ("cc-by", "", "CC BY"),
        ("CC_BY_SA_3.0", "", "CC BY-SA 3.0"),
        ("ccbyncnd", "", "CC BY-NC-ND"),
        ("by-nc-sa", "", "CC BY-NC-SA"),
        ("CC BY-SA-NC 4.0", "", "CC BY-NC-SA 4.0"),
        ("CC-BY v4.0", "", "CC BY 4.0"),
        ("Attribution-NonCommercial-ShareAlike License", "", "CC BY-NC-SA"),
        ("Creative Commons Attribution-NoDerivatives 4.0 International", "", "CC BY-ND 4.0"),
        ("Attribution-NonCommercial-NoDerivs 2.5 Generic", "", "CC BY-NC-ND 2.5"),
        ("Creative Commons Attribution Non-Commercial Share Alike 3.0 Unported", "",
         "CC BY-NC-SA 3.0"),
        ("(c) Jo Doe, some rights reserved (CC BY-NC)", "", "CC BY-NC"),
        ("no rights reserved (CC0)", "", "CC0"),
        ("CC0", "", "CC0"),
        ("Public Domain Dedication", "", "CC0"),
        ("Public Domain Mark", "", "Public domain"),
        ("", f"{CC}/licenses/by-nc/4.0/", "CC BY-NC 4.0"),
        ("", "http://creativecommons.org/licenses/by/2.0/de/", "CC BY 2.0"),
        ("", "//www.creativecommons.org/licenses/by-nc-nd/4.0", "CC BY-NC-ND 4.0"),
        ("", f"{CC}/licenses/by-sa/4.0/deed.de?ref=chooser", "CC BY-SA 4.0"),
        ("", f"{CC}/publicdomain/zero/1.0/", "CC0 1.0"),
        ("", f"{CC}/publicdomain/mark/1.0/", "Public domain"),
        (f"{CC}/licenses/by-nc/4.0/", "", "CC BY-NC 4.0"),
        ("  CC  BY ", f"{CC}/licenses/by/3.0/", "CC BY 3.0"),
        ("photo licence", f"{CC}/licenses/by/4.0/", "CC BY 4.0"),
        ("CC BY-ND", "https://example.org/terms", "CC BY-ND"),
    ],
)  # fmt: skip
def test_licenses_that_allow_copies(license, url, name):
    found = license_of(license, url)
    assert found.name == name
    assert found.may_redistribute
    assert found.refusal == ""


@pytest.mark.parametrize(
    ("license", "url", "refusal"),
    [
        ("", "", "no licence is given"),
        ("© Jo Doe, all rights reserved", "", "all rights are reserved"),
        ("C", "", "all rights are reserved"),
        ("by", "", "not one that is known"),
        ("CC SA 1.0", "", "not one that is known"),
        ("CC BY-ND-SA", "", "not one that is known"),
        ("CC BY, but ask me first", "", "not one that is known"),
        ("not CC BY", "", "not one that is known"),
        ("some rights reserved", "", "not one that is known"),
        ("GPL-2.0", "https://www.gnu.org/licenses/old-licenses/gpl-2.0.html", "not one that is"),
        ("", "https://creativecommons.org.example.org/licenses/by/4.0/", "not one that is known"),
        ("", "https://example.org/?u=creativecommons.org/licenses/by/4.0/", "not one that is"),
        ("", f"{CC}/licenses/by/9.9/", "not one that is known"),
        ("CC BY", f"{CC}/licenses/by-nc/4.0/", "of different licences"),
        ("CC0", f"{CC}/licenses/by/4.0/", "of different licences"),
    ],
)
def test_licenses_that_allow_no_copies(license, url, refusal):
    found = license_of(license, url)
    assert refusal in found.refusal
    assert not found.may_redistribute


def test_obligations_are_reported_in_words():
    license = license_of("CC BY-NC-SA 4.0", "")
    assert license.obligations == (
        "name the rights holder and the licence",
        "no commercial use",
        "pass on changed copies under the same licence",
    )
    assert license_of("CC BY-ND", "").obligations[-1] == "pass on unchanged copies only"
    assert license_of("CC0", "").obligations == ()
    assert license_of("public domain", "").obligations == ()


def test_the_address_of_a_license():
    assert license_of("CC BY-NC 4.0", "").url == f"{CC}/licenses/by-nc/4.0/"
    assert license_of("", "http://creativecommons.org/licenses/by/2.0/de/legalcode").url == (
        f"{CC}/licenses/by/2.0/de/"
    )
    assert license_of("CC BY-NC", "").url == ""
