"""A folder of images, with folders of any kind and depth in it."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from core.text import has_controls, printable
from retrieval.importing.choices import ImportChoices
from retrieval.importing.known_names import known_names
from retrieval.importing.records import (
    Effect,
    ImageRecord,
    ImportRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.sidecars import facts_by_image, facts_of, is_litter, is_sidecar
from retrieval.importing.species_names import Taxon, taxon_of

MAX_FILE_NAME: Final = 500
MAX_TAXON: Final = 200
MAX_FOLDER: Final = 500
# Suffixes of images, readable or not.
IMAGE_SUFFIXES: Final = (
    ".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".j2k", ".jfif", ".jp2", ".jpe", ".jpeg",
    ".jpg", ".jxl", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".svg", ".tif", ".tiff", ".webp",
)  # fmt: skip
# So many times more names must be evident species than others that could be some.
_EVIDENT: Final = 4


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the names of the folders above an image say of it."""

    scientific_name: str
    taxon_text: str
    folder: str


class FolderSource:
    """Reads the images at any depth of a folder.

    The nearest folder upward that is called by a species gives the species. Without one, the
    nearest that is called by another taxon gives the taxon's text. The names of all others are the
    folder name. Hidden files, what operating systems add, and other files at the top are passed
    over, as are files beside images that are none; date and place are read from those of Google's
    Takeout. Links to folders are refused. Raises ImportRefused if there is no file that may be an
    image.
    """

    def __init__(
        self, root: Path, refuse: Callable[[Refusal], None], choices: ImportChoices
    ) -> None:
        self.root = root
        self.unused: list[str] = []
        self._refuse = refuse
        self._passed_over: Counter[str] = Counter()
        candidates = {folder: self._candidates(folder, names) for folder, names in self._folders()}
        if not any(candidates.values()):
            others = f", only {self._others()}" if self._passed_over else ""
            raise ImportRefused(str(root), f"There is no image in this folder{others}.")
        above = [part for part in choices.above.split("/") if part]
        names = {folder: (*above, *folder.relative_to(root).parts) for folder in candidates}
        self._taxa = _taxa({name for parts in names.values() for name in parts}, choices)
        self._readings: dict[Path, _Reading] = {}
        self._count = 0
        for folder, count in candidates.items():
            reading = self._read(names[folder])
            if choices.folders_are_species and not reading.scientific_name:
                if count:
                    self._refuse_as_no_species(folder)
                continue
            self._readings[folder] = reading
            self._count += count

    @property
    def highest_id(self) -> int:
        """The highest preferred id: -1, since images of folders have none."""
        return -1

    def default_dataset(self) -> str:
        """Return the folder's name."""
        return self.root.resolve().name

    def species(self) -> list[SpeciesRecord]:
        """Return the species of the folders."""
        wanted = {reading.scientific_name for reading in self._readings.values()}
        read = [taxon.species for taxon in self._taxa.values() if taxon.species]
        # Of two folders of a species, the one whose name has the lineage comes last, and counts.
        read.sort(key=lambda species: bool(species.kingdom))
        return [species for species in read if species.scientific_name in wanted]

    def count(self) -> int:
        """Count the files that may be images."""
        return self._count

    def images(self) -> Iterator[ImageRecord]:
        """Yield the images in the order of their paths; then tell what was passed over."""
        described = 0
        for folder, reading in self._readings.items():
            files = [entry.name for entry in os.scandir(folder) if not entry.is_dir()]
            sidecars = facts_by_image(folder, files)
            for file_name in sorted(name for name in files if self._may_be_image(folder, name)):
                name = (folder / file_name).relative_to(self.root).as_posix()
                if len(name) > MAX_FILE_NAME or has_controls(name):
                    self._refuse_path(
                        name,
                        "file_name",
                        "must hold no control characters and be of at most "
                        f"{MAX_FILE_NAME} letters",
                    )
                    continue
                facts = facts_of(folder / sidecars[file_name]) if file_name in sidecars else {}
                described += bool(facts)
                yield ImageRecord(
                    source_id=name,
                    preferred_id=None,
                    file_name=name,
                    record="",
                    scientific_name=reading.scientific_name,
                    taxon_text=reading.taxon_text,
                    folder=reading.folder,
                    **facts,
                )
        if self._passed_over:
            also = f"; the date or place of {described:,} images is theirs" if described else ""
            reason = f"are no images{also}"
            self._refuse(Refusal(self._others(), "", "", reason, Effect.PASSED_OVER))

    def _folders(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield this folder and all below it, with the names of their files; refuse links to
        folders, and folders whose names are no text.
        """
        for parent, folders, files in os.walk(self.root):
            here = Path(parent)
            folders[:] = sorted(name for name in folders if self._is_entered(here / name))
            yield here, files

    def _is_entered(self, folder: Path) -> bool:
        if is_litter(folder.name):
            return False
        path = folder.relative_to(self.root).as_posix()
        if has_controls(folder.name):
            self._refuse_path(path, "folder", f"holds control characters: {folder.name!r}")
            return False
        if folder.is_symlink():
            self._refuse_path(
                path,
                "file_name",
                "is a link to a folder, which is not followed. Put the folder itself here.",
            )
            return False
        return True

    def _may_be_image(self, folder: Path, name: str) -> bool:
        is_other = folder == self.root and Path(name).suffix.lower() not in IMAGE_SUFFIXES
        return not (is_other or is_litter(name) or is_sidecar(name))

    def _candidates(self, folder: Path, names: list[str]) -> int:
        """Count the files of a folder that may be images, and the others by their suffixes."""
        others = [name for name in names if not self._may_be_image(folder, name)]
        self._passed_over.update(
            Path(name).suffix.lower() or "without a suffix"
            for name in others
            if not is_litter(name)
        )
        return len(names) - len(others)

    def _others(self) -> str:
        """The number and kinds of the files that were passed over."""
        kinds = ", ".join(map(printable, sorted(self._passed_over)[:5]))
        count = self._passed_over.total()
        return f"{count:,} other file{'s' * (count > 1)} ({kinds})"

    def _read(self, names: Sequence[str]) -> _Reading:
        """Read the names of the folders above an image, the highest first."""
        taxa = [self._taxa[name] for name in names]
        # A species holds also below a vernacular name, but not below “Rana cf. temporaria”.
        decisive = [at for at, taxon in enumerate(taxa) if taxon.species or taxon.is_open]
        of_taxa = [at for at, taxon in enumerate(taxa) if taxon.recognized]
        at = (decisive or of_taxa or [-1])[-1]
        folder = "/".join(
            unicodedata.normalize("NFC", name)
            for place, name in enumerate(names)
            if place != at and not taxa[place].species
        )
        if at < 0:
            return _Reading("", "", folder[:MAX_FOLDER])
        species, text = taxa[at].species, taxa[at].text[:MAX_TAXON]
        return _Reading(species.scientific_name if species else "", text, folder[:MAX_FOLDER])

    def _refuse_as_no_species(self, folder: Path) -> None:
        if folder == self.root:
            reason = "its images lie in no folder, and are left out. Move them into one."
            self._refuse_path(folder.name, "folder", reason)
            return
        reason = (
            f"“{folder.name}” is not a species name, and its images are left out. Name the folder "
            "after its species, such as “Rana temporaria”, or choose that folders may have any "
            "name."
        )
        self._refuse_path(folder.relative_to(self.root).as_posix(), "folder", reason)

    def _refuse_path(self, name: str, field: str, reason: str) -> None:
        # A name may contain bytes that are no text.
        self._refuse(Refusal(printable(name), "", field, printable(reason)))


def _taxa(names: Collection[str], choices: ImportChoices) -> dict[str, Taxon]:
    """Read the names of folders. Names that only could be species are some where most others are,
    or where folders are to be species.
    """
    known = known_names(by_form=choices.folders_are_species)
    taxa = {name: taxon_of(name, known) for name in sorted(names)}
    species = [taxon.species for taxon in taxa.values() if taxon.species]
    known = known.with_lineages(species)
    unsure = [name for name, taxon in taxa.items() if not taxon.species]
    by_form = replace(known, by_form=True)
    could_be = sum(taxon_of(name, by_form).species is not None for name in unsure)
    if len(species) > _EVIDENT * could_be:
        known = by_form
    return taxa | {name: taxon_of(name, known) for name in unsure}
