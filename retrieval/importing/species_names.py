"""Species from names as people write them, and iconic groups from lineages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from core.text import has_controls
from retrieval.importing.name_words import (
    AUTHORS,
    EVERYDAY_GENERA,
    GENERA,
    HIGHER_TAXA,
    PLAIN_WORDS,
)
from retrieval.importing.records import RecordRefused, SpeciesRecord

# Names of INQUIRE's groups in other data sets (iNat21, iNat2017).
_ICONIC_SYNONYMS: Final = {
    "ray-finned fishes": "Fish",
    "fishes": "Fish",
    "actinopterygii": "Fish",
    "amphibia": "Amphibians",
    "arachnida": "Arachnids",
    "aves": "Birds",
    "insecta": "Insects",
    "mammalia": "Mammals",
    "mollusca": "Mollusks",
    "molluscs": "Mollusks",
    "plantae": "Plants",
    "reptilia": "Reptiles",
}
_ICONIC_GROUPS: Final = (
    "Animalia", "Amphibians", "Arachnids", "Birds", "Fish", "Fungi", "Insects", "Mammals",
    "Mollusks", "Plants", "Reptiles",
)  # fmt: skip
_ICONIC_BY_CLASS: Final = {
    "actinopterygii": "Fish",
    "chondrichthyes": "Fish",
    "elasmobranchii": "Fish",
    "amphibia": "Amphibians",
    "arachnida": "Arachnids",
    "aves": "Birds",
    "insecta": "Insects",
    "mammalia": "Mammals",
    "reptilia": "Reptiles",
}
_NUMBER: Final = re.compile(r"\d+")
_GENUS: Final = re.compile(r"[A-Z][a-zà-öø-ÿ-]+")
_EPITHET: Final = re.compile(r"[a-zà-öø-ÿ×.-]+")
_INAT_RANKS: Final = 6


def clean_name(text: str) -> str:
    """Return a name in NFC with single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def iconic_group(*, supercategory: str = "", kingdom: str = "", phylum: str = "",
                 class_name: str = "") -> str:  # fmt: skip
    """Return INQUIRE's iconic group for a data set's supercategory, else for a lineage, else ""."""
    name = clean_name(supercategory).lower()
    if name in _ICONIC_SYNONYMS:
        return _ICONIC_SYNONYMS[name]
    for group in _ICONIC_GROUPS:
        if group.lower() == name:
            return group
    if class_name.lower() in _ICONIC_BY_CLASS:
        return _ICONIC_BY_CLASS[class_name.lower()]
    if phylum.lower() == "mollusca":
        return "Mollusks"
    return {"animalia": "Animalia", "plantae": "Plants", "fungi": "Fungi"}.get(kingdom.lower(), "")


@dataclass(frozen=True, slots=True)
class Taxon:
    """What a name of a taxon says: a species, or else the text as it is.

    Beside a species, `text` is what follows its name and is no author, such as "(juv.)".
    """

    species: SpeciesRecord | None = None
    text: str = ""
    recognized: bool = False
    """Whether the name is known to be that of a taxon."""
    is_open: bool = False
    """Whether that taxon is uncertain, a hybrid of two species, or the like."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names that are known beside those of `name_words`, in lower case."""

    species: Mapping[str, str] = field(default_factory=dict)
    """The scientific names of the corpus's species, by themselves in lower case."""
    genera: AbstractSet[str] = frozenset()
    others: AbstractSet[str] = frozenset()
    """Higher ranks and vernacular names."""
    by_form: bool = True
    """Whether what is written as “Rana temporaria” is a species if it is Latin by its endings; else
    endings must be those that are rare in other languages, or the genus known."""

    def has_genus(self, word: str) -> bool:
        """Whether a word is the name of a genus."""
        return word.lower() in self.genera or word.lower() in GENERA

    def is_everyday(self, word: str) -> bool:
        """Whether a word is a genus and also a word or a first name."""
        return word.lower() in EVERYDAY_GENERA and word.lower() not in self.genera

    def has_rank(self, word: str) -> bool:
        """Whether a word is the name of a taxon above genus, or a vernacular name."""
        word = word.lower()
        return word in HIGHER_TAXA or word in self.others or bool(_RANK.fullmatch(word))

    def with_lineages(self, records: Iterable[SpeciesRecord]) -> KnownNames:
        """Return these names with the genera and higher ranks of the species of an import."""
        genera, ranks = set(self.genera), set(self.others)
        for record in records:
            genera.add(record.genus.lower())
            higher = (record.kingdom, record.phylum, record.class_name, record.order, record.family)
            ranks |= {name.lower() for name in higher}
        return replace(self, genera=genera - {""}, others=ranks - {""})


CELLS: Final = KnownNames()
"""For a table's column of names: nothing is known beside the lists of words."""

# What marks an uncertain, undescribed or collective taxon, without its dot.
_OPEN: Final = frozenset(
    ("cf", "aff", "sp", "spp", "spec", "nr", "kl", "indet", "undet", "unid", "agg", "cv", "ined",
     "prope", "gr", "group", "complex", "hybrid", "s.l", "s.lat")
)  # fmt: skip
_SEVERAL: Final = frozenset(("/", "&", "+", "|", "and", "or", "und", "oder", "et", "ou", "y", "o"))
_MARKERS: Final = frozenset(("subsp", "ssp", "var", "subvar", "f", "fo", "forma", "nothosubsp"))
_PARTICLES: Final = frozenset(
    ("van", "von", "der", "den", "de", "da", "do", "du", "des", "del", "della", "la", "le", "dos")
)
_CONNECTIVES: Final = frozenset(("&", "et", "ex", "in", "and", "al", "f", "fil", "non", "auct"))
_TIMES: Final = ("×", "x", "X")
_CODE: Final = re.compile(r"BOLD[ :_-]?[A-Z]{3}\d{3,}|SH\d{6,}(\.\d\dFU)?", re.IGNORECASE)
_CULTIVAR: Final = re.compile(r"\s['‘’\"“”]\w")
_LETTERS: Final = re.compile(r"[^\W\d_]+(-[^\W\d_]+)*")
_SUBGENUS: Final = re.compile(r"\([A-Z][a-z-]+\)")
_RANK: Final = re.compile(
    r"[a-z]{2,}(idae|inae|aceae|oideae|iformes|optera|opsida|mycetes|mycota|phyta)"
)
_YEAR_AFTER_COMMA: Final = re.compile(r"(.*), ?[(\[]?(1[789]|20)\d\d[a-z]?[)\]]*")
_OLD_YEAR: Final = re.compile(r"1[789]\d\d")
# Endings of epithets and genera in Latin; strong ones are rare in today's languages, soft ones
# common.
_LATIN: Final = (
    "a", "e", "i", "o", "u", "us", "is", "es", "os", "as", "ans", "ens", "ops", "x", "ys", "um",
    "or", "er", "ar", "on",
)  # fmt: skip
_STRONG: Final = ("us", "is", "um", "ii", "ensis", "ense", "oides", "ae", "ops", "ax", "ix", "yx")
_NOT_STRONG: Final = ("aus", "ois", "eis", "ous")
_SOFT: Final = ("e", "er", "ar", "or", "on", "es", "os", "o", "u")
_NOT_SOFT: Final = ("ae", "ense", "are", "ale", "ile", "estre", "ifer", "iger", "oides", "ytes")
_UNMISTAKABLE: Final = (
    "ensis", "ense", "oides", "atus", "atum", "icus", "icum", "osus", "osum", "inus", "inum",
    "anus", "arum", "orum", "folius", "folia", "ii",
)  # fmt: skip


def taxon_of(name: str, known: KnownNames = CELLS) -> Taxon:
    """Read the name of a folder, or a table's cell, as a species; else keep it as a text.

    A binomial or trinomial in any case is a species, without its author, if its words are Latin by
    their form; in lower case also its genus must be known, or both words unmistakable. Open names
    ("cf.", "sp."), formulas of hybrids, codes and cultivars stay text. A name that the corpus has
    as a species is that species.
    """
    text = clean_name(name)
    if has_controls(text):
        return Taxon(text=text)
    plain = clean_name(text.replace("_", " "))
    stored = known.species.get(plain.lower(), "")
    if "(" in stored or "×" in stored:
        return Taxon(SpeciesRecord(stored), recognized=True)
    with suppress(RecordRefused):
        if stored:
            return Taxon(species_from_folder(stored), recognized=True)
        if len(plain.split(" ")) > _INAT_RANKS + 1:
            return Taxon(species_from_folder(plain), recognized=True)
    words = _words(plain, known)
    if _CODE.fullmatch(text) or _is_open(words, text, known):
        return Taxon(text=text, recognized=True, is_open=True)
    if plain.lower() in known.others and not known.has_genus(words[0]):
        return Taxon(text=text, recognized=True)
    if len(words) > 1 and (read := _species(words, known)):
        return Taxon(*read, recognized=True)
    return Taxon(text=text, recognized=_is_higher(words, known))


def _words(plain: str, known: KnownNames) -> list[str]:
    """The words of a name without a number before it; one after it is a word of its own."""
    plain = re.sub(r"^\d+[.) -]+(?=\D)", "", plain)
    plain = re.sub(r"(?<=[^\W\d_])-?(\d+)$", r" \1", plain)
    genus, hyphen, epithet = plain.partition("-")
    if hyphen and " " not in plain and known.has_genus(genus):
        return [genus, epithet]
    words = plain.split(" ")
    if words[0] in _TIMES and len(words) > 1:
        return [f"×{words[1]}", *words[2:]]
    return words


def _is_higher(words: Sequence[str], known: KnownNames) -> bool:
    """Whether a name, perhaps with an author, is that of a genus, a higher rank or vernacular."""
    first, rest = words[0], " ".join(words[1:])
    if " ".join(words).lower() in known.others:
        return True
    if rest and not rest.startswith("(") and not _is_author(rest):
        return False
    if known.is_everyday(first):
        return first.istitle()
    return known.has_rank(first) or known.has_genus(first)


def _is_open(words: Sequence[str], text: str, known: KnownNames) -> bool:
    """Whether a name is that of a taxon, but of no single species."""
    bare = [word.lower().strip(".,;:()?") for word in words]
    if re.fullmatch(r"[A-Z]\.", words[0]):
        return len(words) > 1 and words[1].islower() and _is_latin(bare[1])
    marked = bool(set(bare[1:]) & _OPEN) or text.endswith("?") or bool(_CULTIVAR.search(text))
    if bare[0] in ("cf", "aff") and len(words) > 1:
        words, bare, marked = words[1:], bare[1:], True
    if not marked and not _is_formula(words):
        return False
    is_genus = bool(_GENUS.fullmatch(words[0])) and _is_latin(bare[0])
    return known.has_genus(bare[0]) or known.has_rank(bare[0]) or (
        is_genus and bare[0] not in PLAIN_WORDS
    )  # fmt: skip


def _is_formula(words: Sequence[str]) -> bool:
    """Whether a name is that of a hybrid by its parents, "A b × A c", and not "A × b"."""
    signs = [at for at, word in enumerate(words) if "×" in word or word in _TIMES]
    if signs == [1]:
        after = "".join(words[1:3]).lstrip("".join(_TIMES))
        return not after[:1].islower()
    return bool(signs) and signs != [0]


def _species(words: Sequence[str], known: KnownNames) -> tuple[SpeciesRecord, str] | None:
    """Return a species and what follows its name and is no author; None if there is none."""
    genus, rest = words[0].lstrip("×"), list(words[1:])
    if _SUBGENUS.fullmatch(rest[0]) and len(rest) > 1:
        del rest[0]
    sign = ""
    if rest[0] in _TIMES and len(rest) > 1:
        sign = f"{rest.pop(0)} "
    elif rest[0].startswith("×"):
        sign, rest[0] = "×", rest[0][1:]
    if not _is_binomial(genus, rest, known):
        return None
    epithets, ended = [sign + rest[0].rstrip(",;:").lower()], not rest[0][-1].isalpha()
    del rest[0]
    while rest and not ended and (more := _further_epithet(rest)):
        epithets += more
        del rest[: len(more)]
    tail = " ".join(rest).strip(" ,;:")
    several = bool(re.match(r"[A-Z][a-z]+ [a-z]{3,}", tail)) and known.has_genus(rest[0])
    if several or (rest and rest[0].lower() in _SEVERAL):
        return None
    genus = genus.capitalize()
    name = " ".join(["×" * words[0].startswith("×") + genus, *epithets])
    if len(name) > 200:
        return None
    species = SpeciesRecord(name, genus=genus, specific_epithet=" ".join(epithets)[:100])
    return species, "" if _is_author(tail) else tail


def _is_binomial(genus: str, rest: Sequence[str], known: KnownNames) -> bool:
    """Whether a word, and the first of those after it, are a genus and an epithet."""
    as_written = bool(_GENUS.fullmatch(genus)) and rest[0][:1].islower()
    titled = not as_written and rest[0].istitle()
    genus, epithet = genus.lower(), rest[0].rstrip(",;:").lower()
    if not all(map(_LETTERS.fullmatch, (genus, epithet))) or len(epithet) < 2:
        return False
    if f"{genus} {epithet}" in known.species:
        return True
    author = epithet in AUTHORS or _YEAR_AFTER_COMMA.fullmatch(" ".join(rest[:2]))
    if (
        {*genus.split("-"), *epithet.split("-")} & PLAIN_WORDS
        or epithet in _PARTICLES
        or (author and not as_written)
    ):
        return False
    if known.has_genus(genus):
        if genus == epithet:
            return True
        if as_written:
            return not known.is_everyday(genus) or (
                _is_latin(epithet) and (not epithet.endswith(("e", "er")) or not _is_soft(epithet))
            )
        return _is_latin(epithet) and not (known.is_everyday(genus) and _is_soft(epithet))
    if titled or not (_is_latin(genus) and _is_latin(epithet)):
        return False
    if as_written:
        if known.by_form or (_is_strong(genus) and not epithet.endswith(("e", "er"))):
            return True
        return len(epithet) > 3 and (
            _is_strong(epithet)
            or epithet.endswith("i")
            or not (_is_soft(epithet) or _is_soft(genus) or genus.endswith("i"))
        )
    if _is_strong(genus) and len(genus) > 4:
        return _is_strong(epithet) or epithet.endswith(("a", "i", "ans", "ens", "or"))
    return epithet.endswith(_UNMISTAKABLE) and len(epithet) > 5 and not _is_soft(genus)


def _further_epithet(words: Sequence[str]) -> list[str]:
    """Return the epithet below species rank with which the words begin, after its marker."""
    marker = words[:1] if words[0].lower().rstrip(".") in _MARKERS and len(words) > 1 else []
    word = words[len(marker)]
    epithet = word.lower()
    others = PLAIN_WORDS | AUTHORS | _PARTICLES | _CONNECTIVES | _SEVERAL
    if (epithet in others or not _LETTERS.fullmatch(word) or not _is_latin(epithet)
            or word[1:].islower() != word.islower()):  # fmt: skip
        return []
    return [*marker, epithet]


def _is_author(text: str) -> bool:
    """Whether what follows a name is its author: with a year, abbreviated, or of many names."""
    words = re.findall(r"[^\s()\[\],]+", text)
    lower = [word.lower().rstrip(".") for word in words]
    if not words or (set(lower) & PLAIN_WORDS) - _PARTICLES or text[0].isdigit():
        return False
    if _YEAR_AFTER_COMMA.fullmatch(text):
        return True
    evident = lower[0] in _PARTICLES and len(words) > 1
    for word, plain in zip(words, lower, strict=True):
        if plain in AUTHORS or (word.endswith(".") and len(words) < 6) or _OLD_YEAR.fullmatch(word):
            evident = True
        elif not (word[0].isupper() or plain in _PARTICLES or plain in _CONNECTIVES):
            return False
    return evident or bool({"&", "et", "ex"} & set(lower[1:]))


def _bare(word: str) -> str:
    """A word in lower case without accents."""
    letters = unicodedata.normalize("NFD", word.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _is_latin(word: str) -> bool:
    return _bare(word).endswith(_LATIN)


def _is_strong(word: str) -> bool:
    return _bare(word).endswith(_STRONG) and not _bare(word).endswith(_NOT_STRONG)


def _is_soft(word: str) -> bool:
    return _bare(word).endswith(_SOFT) and not _bare(word).endswith(_NOT_SOFT)


def species_from_folder(name: str) -> SpeciesRecord:
    """Read a species from a folder's name.

    Accepted are iNaturalist's `00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria`,
    `Rana temporaria` and `Rana_temporaria`. Raises RecordRefused for anything else.
    """
    if has_controls(name):
        raise RecordRefused("folder", f"holds control characters: {name!r}")
    parts = clean_name(name.replace("_", " ")).split(" ")
    if len(parts) > _INAT_RANKS + 1 and _NUMBER.fullmatch(parts[0]):
        kingdom, phylum, class_name, order, family, genus, *epithets = parts[1:]
        if all(map(_GENUS.fullmatch, (kingdom, genus))):
            return SpeciesRecord(
                scientific_name=" ".join([genus, *epithets]),
                kingdom=kingdom,
                phylum=phylum,
                class_name=class_name,
                order=order,
                family=family,
                genus=genus,
                specific_epithet=" ".join(epithets),
                iconic_group=iconic_group(kingdom=kingdom, phylum=phylum, class_name=class_name),
            )
    genus, *epithets = parts
    if epithets and _GENUS.fullmatch(genus) and all(map(_EPITHET.fullmatch, epithets)):
        return SpeciesRecord(
            scientific_name=" ".join(parts), genus=genus, specific_epithet=" ".join(epithets)
        )
    raise RecordRefused(
        "folder",
        f"“{name}” is not a species name, such as “Rana temporaria”.",
    )
