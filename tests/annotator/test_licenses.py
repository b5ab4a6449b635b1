"""What a license allows, in the spellings that data sets use."""

import pytest

from core.licenses import license_in, license_of

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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # GBIF, the Integrated Publishing Toolkit, Camtrap DP
        ("CC_BY_NC_4_0", "cc-by-nc"),
        ("CC0_1_0", "cc0"),
        ("HTTP://creativecommons.org/licenses/BY-NC/4.0/legalcode", "cc-by-nc"),
        ("www.creativecommons.org/licenses/by-sa/2.0/uk/", "cc-by-sa"),
        ("This work is licensed under a Creative Commons Attribution Non Commercial (CC-BY-NC) "
         "4.0 License.", "cc-by-nc"),
        ("Public Domain (CC0 1.0)", "cc0"),
        ("CC0 1.0 Universal (CC0 1.0) Public Domain Dedication", "cc0"),
        ("https://spdx.org/licenses/CC-BY-4.0.html", "cc-by"),
        ("CC-BY-NC-SA 4.0 (Int)", "cc-by-nc-sa"),
        # iNaturalist, Flickr
        ("(c) Jo Doe, some rights reserved (CC BY-NC), uploaded by Jo Doe", "cc-by-nc"),
        ("Attribution-NonCommercial-NoDerivs License", "cc-by-nc-nd"),
        # Wikimedia
        ("cc-by-sa-3.0-de", "cc-by-sa"),
        ("cc-by-sa-3.0,2.5,2.0,1.0", "cc-by-sa"),
        ("CC-BY-SA-3.0-migrated", "cc-by-sa"),
        ("PD-old-100", "pd"),
        # BOLD
        ("CreativeCommons – Attribution Non-Commercial No Derivatives (by-nc-nd)",
         "cc-by-nc-nd"),
        # A name and its code or address; any dash
        ("Attribution 4.0 International (CC BY 4.0)", "cc-by"),
        ("CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/)", "cc-by"),
        ("CC BY‑NC 4.0", "cc-by-nc"),
        ("CC BY 2.0 NC", "cc-by-nc"),
        # Of two the terms of both
        ("CC BY+NC", "cc-by-nc"),
        ("CC BY / CC BY-NC", "cc-by-nc"),
        ("CC BY-NC; CC BY-ND", "cc-by-nc-nd"),
        # None
        ("", ""),
        ("Attribution", ""),
        ("Usage permitted with attribution, not for commercial purposes", ""),
        ("Copyright by the author, attribution needed", ""),
        ("not in the public domain", ""),
        ("public domain in the US", ""),
        ("CC0 for data, CC BY-NC for images", ""),
        ("CC BY-NC 4.0 (images), CC0 (data)", ""),
        ("https://creativecommons.org/licenses/by/4.0/ (texts only)", ""),
        ("http://creativecommons.org/licenses/by/4.0/ "
         "http://creativecommons.org/licenses/by-nc/4.0/", ""),
        ("CC BY: https://creativecommons.org/licenses/by-nc/4.0/", ""),
        ("No commercial use; CC BY", ""),
        ("Not CC-BY", ""),
        ("Attribution; no commercial use", ""),
        ("public domain dedication pending", ""),
        ("(c) Jo, not for commercial use, some rights reserved (CC BY)", ""),
        ("This work is not licensed under CC BY", ""),
        ("keine CC-BY-Lizenz", ""),
        ("CC BY, nicht kommerziell", ""),
        ("CC BY sauf usage commercial", ""),
        ("no está en dominio público", ""),
        ("CC BY or CC0", ""),
        ("CC BY-NC-SA or CC BY-NC-ND", ""),
        ("CC BY 3.0 no", ""),
        ("http://example.org/creativecommons.org/licenses/by/4.0/", ""),
        ("No known copyright restrictions", ""),
    ],
)  # fmt: skip
def test_a_text_is_a_license_where_it_stands_alone(text, code):
    assert license_in(text).code == code
