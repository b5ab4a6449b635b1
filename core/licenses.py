"""What an image's license allows, from the words and the address that its source gives.

This knows the Creative Commons licenses (versions 1.0 to 4.0 and their ports), CC0, the public
domain mark, and the statement that all rights are reserved, in the spellings that data sets use:
"CC BY-NC 4.0", "cc-by-nc", "Attribution-NonCommercial License", "(c) Jo, some rights reserved
(CC BY-NC)", "http://creativecommons.org/licenses/by-nc/4.0/legalcode". A text is only known if all
of its words are: "CC BY, but ask me first" is not. What isn't known allows nothing.

`license_of` reads what images have stored, and the files of releases depend on it byte for byte;
`license_in` reads a source's own text, in the further spellings that archives have.

Source: creativecommons.org/share-your-work/cclicenses and the deeds of each license.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

CREATIVE_COMMONS: Final = "https://creativecommons.org"
ATTRIBUTION: Final = "name the rights holder and the licence"
NON_COMMERCIAL: Final = "no commercial use"
SHARE_ALIKE: Final = "pass on changed copies under the same licence"
NO_DERIVATIVES: Final = "pass on unchanged copies only"

_TERM_WORDS: Final = {
    "by": "by",
    "attribution": "by",
    "nc": "nc",
    "noncommercial": "nc",
    "nd": "nd",
    "noderivs": "nd",
    "noderiv": "nd",
    "noderivatives": "nd",
    "noderivativeworks": "nd",
    "sa": "sa",
    "sharealike": "sa",
}
_OBLIGATIONS: Final = {
    "by": ATTRIBUTION,
    "nc": NON_COMMERCIAL,
    "sa": SHARE_ALIKE,
    "nd": NO_DERIVATIVES,
}
#: In the order in which a license's name has them.
_TERMS: Final = ("by", "nc", "nd", "sa")
#: Every license that there is: the terms after the "by".
_LICENSES: Final = frozenset(
    frozenset(terms)
    for terms in (("by",), ("by", "sa"), ("by", "nd"), ("by", "nc"), ("by", "nc", "sa"),
                  ("by", "nc", "nd"))
)  # fmt: skip
_NOISE: Final = frozenset(
    {"cc", "creative", "commons", "license", "licence", "licensed", "licenced", "under", "the", "a",
     "international", "unported", "generic", "deed", "legalcode", "public", "version", "v", "intl"}
)  # fmt: skip
_VERSION: Final = re.compile(r"v?([1-4])(?:\.([05]))?(?:\.0)?")
_GLUED: Final = re.compile(r"cc(by)(nc)?(nd|sa)?")
_SEPARATORS: Final = re.compile(r"[\s_,;:/+()-]+")
_WHOSE: Final = r"(?:(?:©|\(c\)|copyright).*)?"
_SOME_RESERVED: Final = re.compile(_WHOSE + r"\b(?:some|no) rights reserved[ ,:]*\(([^()]+)\)\.?")
_ALL_RESERVED: Final = re.compile(_WHOSE + r"\ball rights reserved\.?|©|\(c\)|c|copyright(?:ed)?")
_CREATIVE_COMMONS: Final = frozenset({"cc", "creative", "commons", "license", "licence", "the"})
_PUBLIC_WORDS: Final = frozenset({"public", "domain", "publicdomain", "work", "pd", "pdm", "mark"})
_ZERO_WORDS: Final = frozenset(
    {"cc0", "cczero", "zero", "0", "universal", "public", "domain", "publicdomain", "dedication"}
)
_ADDRESS: Final = re.compile(
    r"(?:https?:)?(?://)?(?:www\.)?creativecommons\.org/(?P<kind>licenses|publicdomain)/"
    r"(?P<terms>[a-z-]+)(?:/(?P<version>[0-9.]+))?(?P<port>/[a-z]{2,3}(?:-[a-z]{2,3})?)?"
    r"(?:/?(?:legalcode|deed|rdf)?(?:[.-][a-z_-]+)?)?/?"
)
_DASHES: Final = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_EDGES: Final = " .,;\"'\u201c\u201d\u201e[]<>"
_ANY_ADDRESS: Final = re.compile(
    r"(?:(?:https?:)?//|\b(?:www\.)?creativecommons\.org/)[^\s<>()\"',;]+"
)
_SPDX: Final = re.compile(r"(?:https?:)?//(?:www\.)?spdx\.org/licenses/([a-z0-9.-]+?)(?:\.html)?/?")
_PORTS: Final = (
    "a[muretz]|b[egr]|c[halnorz]|d[ek]|e[cegs]|fi|fr|g[ert]|h[kru]|i[elnt]|igo|jp|kr|lu|m[kxty]|"
    "n[lz]|p[ehlrt]|r[os]|s[egi]|scotland|t[hw]|u[gks]|v[en]|za"
)
#: Spellings of archives, and what `license_of` knows for them: GBIF's codes, BOLD's names, GBIF's
#: sentence, ports (which there are up to version 3.0), Wikimedia's codes, iNaturalist's credits.
_SPELLINGS: Final = tuple(
    (re.compile(pattern), known)
    for pattern, known in (
        (r"(?<![a-z\d])([1-4])[_-]([05])(?!\d)", r"\1.\2"),
        (r"creativecommons", "creative commons"),
        (r"^this (?:work|image|photo|photograph) is (?=licen[cs]ed under )", ""),
        (rf"(?<=[1-3]\.[05])[ _-]\(?(?:{_PORTS})\)?$", ""),
        (r"[ _-]\(?int\)?$", ""),
        (r"(?<=[a-z\d])-(?:all|migrated)$", ""),
        (r"^pd-(?:self|user|author|old(?:-\d+)*|usgov(?:-\w+)*)$", "pd"),
        (r"(?<=\)),? uploaded by [^,;()]+$", ""),
    )
)
_ONE_VERSION: Final = re.compile(r"(?<![\w.])v?([1-4]\.[05])(?![\w.])")
#: Between "©" and "some rights reserved" there is a name, not a condition.
_CONDITION: Final = re.compile(
    r"(?:©|\(c\)|copyright).*\b(?:commercial\w*|permission|only|except|not|without|nc|nd)\b.*"
    r"\brights reserved"
)


@dataclass(frozen=True, slots=True)
class License:
    """What is known of a license."""

    name: str
    """Its usual name, "CC BY-NC 4.0"; "unknown" and "not given" where there is none."""
    url: str
    """Creative Commons' address of it; empty where that isn't known."""
    may_redistribute: bool
    """Whether unchanged copies may be passed on, under its obligations, free of charge."""
    obligations: tuple[str, ...] = ()
    """The obligations of those who pass copies on, in words."""
    refusal: str = ""
    """Why copies may not be passed on; empty where they may."""

    @property
    def code(self) -> str:
        """Its code without a version: "cc0", "pd", "cc-by-nc"; empty where copies may not be passed
        on.
        """
        if self.refusal:
            return ""
        if self == PUBLIC_DOMAIN:
            return "pd"
        return "-".join(self.name.lower().split(" ")[:2]) if self.obligations else "cc0"


PUBLIC_DOMAIN: Final = License("Public domain", "", True)
ALL_RIGHTS_RESERVED: Final = License(
    "All rights reserved", "", False, refusal="all rights are reserved"
)
NOT_GIVEN: Final = License("not given", "", False, refusal="no licence is given")
UNKNOWN: Final = License("unknown", "", False, refusal="the licence is not one that is known here")
CONTRADICTION: Final = License(
    "unknown", "", False, refusal="the licence's name and its address are of different licences"
)
CURATED_NAMES: Final = {
    "cc0": "CC0 1.0", "pd": "Public domain", "cc-by": "CC BY", "cc-by-nc": "CC BY-NC",
    "cc-by-sa": "CC BY-SA", "cc-by-nd": "CC BY-ND", "cc-by-nc-sa": "CC BY-NC-SA",
    "cc-by-nc-nd": "CC BY-NC-ND",
}  # fmt: skip
"""The names that `curate` writes, by `License.code`."""


@lru_cache(maxsize=4096)
def license_of(license: str, url: str) -> License:
    """The license that a text and an address mean; either may be blank.

    One without derivatives allows unchanged copies. A blank, an unknown license, and a name whose
    address is of another license don't.
    """
    name, address = _normalized(license), _normalized(url)
    if not name and not address:
        return NOT_GIVEN
    # Some sources write the address where the name belongs.
    by_name = (_of_address(name) or _of_name(name)) if name else None
    by_address = _of_address(address) if address else None
    # Where one of them isn't known, the other decides.
    if by_name is None:
        return by_address or UNKNOWN
    if by_address is None:
        return by_name
    same_terms = (by_name.may_redistribute, frozenset(by_name.obligations)) == (
        by_address.may_redistribute,
        frozenset(by_address.obligations),
    )
    return by_address if same_terms else CONTRADICTION


@lru_cache(maxsize=4096)
def license_in(text: str) -> License:
    """The license that a source's own text is: a code, a name, an address, or a name with its
    address, standing alone.

    All else is unknown and allows nothing, a bare "attribution" too. Two licenses in one text are
    the one with the terms of both, if there is one, or unknown.
    """
    plain = _normalized(text.translate(_DASHES)).strip(_EDGES)
    addresses = _ANY_ADDRESS.findall(plain)
    name = " ".join(_ANY_ADDRESS.sub(" ", plain).split()).strip(f"{_EDGES}():-")
    if not addresses:
        return _given_name(plain)
    found = [_given_address(address) for address in addresses]
    if name:
        found.append(_given_name(name))
    return found[0] if len({one.code for one in found}) == 1 else UNKNOWN


def _given_address(address: str) -> License:
    address = address.rstrip(".")
    named = _SPDX.fullmatch(address)
    return license_of(named[1], "") if named else license_of("", address)


def _given_name(name: str) -> License:
    if name == "attribution" or _CONDITION.match(name):
        return UNKNOWN
    for spelling, known in _SPELLINGS:
        name = spelling.sub(known, name)
    versions = _ONE_VERSION.findall(name)
    if len(versions) > 1:
        kept = iter(versions[:1] if len(set(versions)) == 1 else ())
        name = _ONE_VERSION.sub(lambda _: next(kept, " "), name)
    return license_of(name, "")


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def _creative_commons(terms: frozenset[str], version: str, port: str = "") -> License | None:
    if terms not in _LICENSES:
        return None
    ordered = [term for term in _TERMS if term in terms]
    short = "-".join(ordered)
    return License(
        name=f"CC {short.upper()} {version}".rstrip(),
        url=f"{CREATIVE_COMMONS}/licenses/{short}/{version}{port}/" if version else "",
        may_redistribute=True,
        obligations=tuple(_OBLIGATIONS[term] for term in ordered),
    )


def _zero(version: str) -> License:
    url = f"{CREATIVE_COMMONS}/publicdomain/zero/1.0/"
    return License(f"CC0 {version}".rstrip(), url, True)


def _of_address(address: str) -> License | None:
    match = _ADDRESS.fullmatch(address.partition("?")[0].partition("#")[0])
    if match is None:
        return None
    version = match["version"] or ""
    if version and re.fullmatch(r"[1-4]\.[05]", version) is None:
        return None
    if match["kind"] == "publicdomain":
        if match["terms"] == "zero":
            return _zero(version)
        return PUBLIC_DOMAIN if match["terms"] == "mark" else None
    terms = match["terms"].split("-")
    if not all(term in _OBLIGATIONS for term in terms):
        return None
    return _creative_commons(frozenset(terms), version, match["port"] or "")


def _of_name(name: str) -> License | None:
    inner = _SOME_RESERVED.fullmatch(name)
    if inner is not None:
        return _of_name(inner[1].strip())
    if _ALL_RESERVED.fullmatch(name):
        return ALL_RIGHTS_RESERVED
    words, version = _words(name)
    specific = set(words) - _CREATIVE_COMMONS
    says_cc = not {"cc", "creative", "attribution"}.isdisjoint(words)
    if specific <= _ZERO_WORDS and (
        specific & {"cc0", "cczero", "dedication"} or (says_cc and specific & {"0", "zero"})
    ):
        return _zero(version)
    if specific <= _PUBLIC_WORDS and specific & {"publicdomain", "domain", "pd", "pdm"}:
        return PUBLIC_DOMAIN
    terms: set[str] = set()
    for word in words:
        if word in _TERM_WORDS:
            terms.add(_TERM_WORDS[word])
        elif glued := _GLUED.fullmatch(word):
            terms |= {part for part in glued.groups() if part}
            says_cc = True
        elif word not in _NOISE:
            return None
    # A lone "by" says nothing.
    return _creative_commons(frozenset(terms), version) if says_cc or len(terms) > 1 else None


def _words(name: str) -> tuple[list[str], str]:
    """The words of a name, and the version among them ("4.0"), or an empty text."""
    for split, whole in (
        ("non commercial", "noncommercial"),
        ("no derivative works", "noderivatives"),
        ("no derivatives", "noderivatives"),
        ("no derivs", "noderivs"),
        ("share alike", "sharealike"),
    ):
        name = re.sub(split.replace(" ", r"[\s_-]"), whole, name)
    words = []
    version = ""
    for word in _SEPARATORS.split(name):
        numbers = _VERSION.fullmatch(word)
        if numbers is not None and not version:
            version = f"{numbers[1]}.{numbers[2] or '0'}"
        elif word:
            words.append(word)
    return words, version
