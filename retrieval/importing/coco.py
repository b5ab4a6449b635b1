"""COCO's JSON, as iNat21, iNat24 and INQUIRE use it.

The file's lists are found, then read one by one to validate and index them, and the images once
more to yield them. The index takes 28 bytes per annotated image (`coco_index`); text ids take more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from core.text import has_controls
from retrieval.importing import fields
from retrieval.importing.coco_index import NO_CATEGORY, NO_KEY, NOT_ANNOTATED, CocoIndex
from retrieval.importing.json_lists import JsonLists
from retrieval.importing.locations import location_of, unread
from retrieval.importing.records import (
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.species_names import iconic_group, species_from_folder

MAX_TEXT_ID: Final = 500

# Ids are sent as JSON numbers: browsers round larger ones.
MAX_IMAGE_ID: Final = 2**53 - 1
_LISTS: Final = ("categories", "licenses", "images", "annotations")
_BLOCK: Final = 1000
_DATES: Final = (
    "date", "date_captured", "observed_on", "observed_at", "time_observed_at", "eventDate",
    "datetime",
)  # fmt: skip
_RANKS: Final = {
    "kingdom": "kingdom",
    "phylum": "phylum",
    "class": "class_name",
    "order": "order",
    "family": "family",
    "genus": "genus",
    "specific_epithet": "specific_epithet",
}
#: The keys of the items of each list that are read.
_READ: Final = {
    "categories": (
        "id", "name", *_RANKS, "lookalike_group", "conservation_status", "common_name",
        "vernacular_names", "image_dir_name", "supercategory",
    ),
    "licenses": ("id", "name", "url", "license_text"),
    "images": (
        "id", "file_name", "width", "height", "license", "license_url", "license_text",
        "rights_holder", *_DATES, "elevation", "observer",
    ),
    "annotations": ("id", "image_id", "category_id"),
}  # fmt: skip
_MOST_KEYS: Final = 1000


class CocoSource:
    """Reads one COCO file.

    The constructor reads and indexes the file, and reports `progress(done, total)` in bytes. It
    raises ImportRefused for a file that is not JSON or has no list `images`. Invalid records are
    passed to `refuse`.
    """

    def __init__(
        self,
        path: Path,
        refuse: Callable[[Refusal], None],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.path = path
        self.root = path.parent
        self._refuse_record = refuse
        self._progress = progress
        self._licenses: dict[Any, tuple[str, str, str]] = {}
        self._keys: dict[str, set[str]] = {name: set() for name in _LISTS}
        self._species: dict[int, SpeciesRecord] = {}
        self._category_numbers: dict[Any, int] = {}
        self._category_ids: list[Any] = []
        self._text_ids: dict[str, int] = {}
        self._version = self._present_version()
        self._read_index()
        self._repeated = self._index.repeated()
        self._names = {number: record.scientific_name for number, record in self._species.items()}
        self._names[NOT_ANNOTATED] = ""
        self._texts = list(self._text_ids)
        for key, own_id in self._index.without_image():
            record = f"annotation {own_id}" if own_id >= 0 else "annotation"
            shown = self._shown_key(key)
            self._refuse(record, RecordRefused("image_id", f"there is no image {shown}"))

    @property
    def unused(self) -> list[str]:
        """The keys that aren't read, such as `coco_url` of images and `annotations: bbox`."""
        return [
            key if name == "images" else f"{name}: {key}"
            for name in ("images", "categories", "licenses", "annotations")
            for key in unread(sorted(self._keys[name]), _READ[name])
        ]

    @property
    def highest_id(self) -> int:
        """The highest integer id of an image, or -1."""
        return self._index.highest(MAX_IMAGE_ID)

    def default_dataset(self) -> str:
        """Return the file's folder and name, such as `inat24/train`."""
        return f"{self.path.resolve().parent.name}/{self.path.stem}"

    def species(self) -> list[SpeciesRecord]:
        """Return the categories as species."""
        return list(self._species.values())

    def count(self) -> int:
        """Count the image records, valid or not."""
        return self._index.count

    def images(self) -> Iterator[ImageRecord]:
        """Yield the valid images in the file's order.

        Raises ImportRefused if the file has changed since it was indexed.
        """
        if self._present_version() != self._version:
            self._refuse_file("The file was changed while it was read. Import it again.")
        seen_repeated: set[int] = set()
        items = self._lists.items("images")
        for start in range(0, self._index.count, _BLOCK):
            keys = self._index.keys[start : start + _BLOCK].tolist()
            numbers = self._index.categories(start, start + len(keys))
            for at, (key, number, item) in enumerate(
                zip(keys, numbers, items, strict=False), start=start + 1
            ):
                try:
                    if key == NO_KEY:
                        self._refuse_id(item)
                    if key in self._repeated:
                        if key in seen_repeated:
                            raise RecordRefused(
                                "id", "an earlier image of this file has the same id"
                            )
                        seen_repeated.add(key)
                    yield self._image(item, key, number)
                except RecordRefused as error:
                    place = f"number {at}" if key == NO_KEY else item["id"]
                    self._refuse(f"image {place}", error)

    def _refuse(self, record: str, error: RecordRefused) -> None:
        self._refuse_record(Refusal(str(self.path), record, error.field, error.reason))

    def _refuse_file(self, reason: str) -> NoReturn:
        raise ImportRefused(str(self.path), f"{reason} Nothing was imported.")

    def _refuse_id(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise RecordRefused("", "must be an object")
        self._image_key(item.get("id"), "id")

    def _read_index(self) -> None:
        """Read categories, licenses, images and annotations, in this order."""
        self._index = CocoIndex()
        self._done = 0
        self._lists = JsonLists(self.path, self._on_bytes)
        self._check_lists()
        for position, item in self._items("categories"):
            self._read_record(self._read_category, "categories", position, item)
        for position, item in self._items("licenses"):
            self._read_record(self._read_license, "licenses", position, item)
        for _, item in self._items("images"):
            key = self._key_or_none(item.get("id") if isinstance(item, dict) else None)
            self._index.image_add(NO_KEY if key is None else key)
        for position, item in self._items("annotations"):
            self._read_record(self._read_annotation, "annotations", position, item)
        self._index.close()
        self._on_bytes(2 * self._version[0] - self._done)

    def _items(self, name: str) -> Iterator[tuple[int, Any]]:
        """Yield (position from 1, item) of a list, and remember the items' keys."""
        keys = self._keys[name]
        for position, item in enumerate(self._lists.items(name, self._on_bytes), start=1):
            if isinstance(item, dict) and len(keys) < _MOST_KEYS and not item.keys() <= keys:
                keys.update(item)
            yield position, item

    def _on_bytes(self, count: int) -> None:
        """Report progress: the file is gone through to find its lists, then they are read."""
        self._done += count
        if self._progress:
            self._progress(self._done, 2 * self._version[0])

    def _check_lists(self) -> None:
        """Refuse the file if `images` is missing or one of its lists is of another type."""
        kinds = self._lists.kinds
        if kinds.get("images") != "start_array":
            self._refuse_file("The file has no list “images”, so it isn't a COCO file.")
        for name in _LISTS:
            if kinds.get(name, "start_array") != "start_array":
                kind = kinds[name].removeprefix("start_").replace("map", "object")
                self._refuse_file(f"“{name}” must be a list, not {kind}.")

    def _present_version(self) -> tuple[int, int, int]:
        try:
            status = self.path.stat()
        except OSError as error:
            self._refuse_file(f"The file cannot be read: {error.strerror}.")
        return status.st_size, status.st_mtime_ns, status.st_ino

    def _read_record(
        self, reader: Callable[[dict[str, Any]], None], name: str, position: int, item: Any
    ) -> None:
        try:
            if not isinstance(item, dict):
                raise RecordRefused("", "must be an object")
            reader(item)
        except RecordRefused as error:
            known = isinstance(item, dict) and "id" in item
            record = fields.shown(item["id"]) if known else f"number {position}"
            self._refuse(f"{_SINGULAR[name]} {record}", error)

    def _read_category(self, item: dict[str, Any]) -> None:
        number = self._category_number(item.get("id"), "id")
        if number in self._species:
            raise RecordRefused("id", "an earlier category of this file has the same id")
        name = fields.text(item, "name", limit=200, required=True)
        ranks = {
            attribute: fields.text(item, rank, limit=100) for rank, attribute in _RANKS.items()
        }
        species = SpeciesRecord(
            scientific_name=name,
            lookalike_group=fields.text(item, "lookalike_group", limit=100),
            conservation_status=fields.text(item, "conservation_status", limit=10),
            names=fields.vernacular_names(item),
            **ranks,
        )
        if not species.kingdom:
            species = _with_folder_lineage(species, fields.text(item, "image_dir_name", limit=500))
        group = iconic_group(
            supercategory=fields.text(item, "supercategory", limit=100),
            kingdom=species.kingdom,
            phylum=species.phylum,
            class_name=species.class_name,
        )
        self._species[number] = replace(species, iconic_group=group)

    def _read_license(self, item: dict[str, Any]) -> None:
        license_id = _scalar(item.get("id"), "id")
        record = f"license {license_id}"
        optional = fields.OptionalFields(item, str(self.path), record, self._refuse_record)
        self._licenses[license_id] = optional.license("name", "url")

    def _read_annotation(self, item: dict[str, Any]) -> None:
        image = self._image_key(item.get("image_id"), "image_id")
        category = item.get("category_id")
        number = NO_CATEGORY if category is None else self._category_number(category, "category_id")
        own_id = item.get("id")
        known_id = own_id if isinstance(own_id, int) and _is_id(own_id) else -1
        self._index.annotation_add(image, number, known_id)

    def _image(self, item: dict[str, Any], key: int, number: int) -> ImageRecord:
        file_name = item.get("file_name")
        if not isinstance(file_name, str) or not file_name:
            raise RecordRefused("file_name", "is missing")
        if len(file_name) > 500 or has_controls(file_name):
            raise RecordRefused(
                "file_name",
                "must hold no control characters and be of at most 500 letters, not "
                + fields.shown(file_name),
            )
        record = f"image {item['id']}"
        optional = fields.OptionalFields(item, str(self.path), record, self._refuse_record)
        license_name = license_url = license_text = ""
        try:
            license_name, license_url, license_text = self._license_of(item, optional)
        except RecordRefused as error:
            optional.leave_out(error)
        location = location_of(optional)
        name = self._names.get(number)
        return ImageRecord(
            self._shown_key(key),
            key if 0 <= key <= MAX_IMAGE_ID else None,
            file_name,
            record,
            self._species_of(key) if name is None else name,
            license_name,
            license_url,
            optional.text("rights_holder", limit=500),
            optional.moment(*_DATES),
            location.latitude,
            location.longitude,
            location.uncertainty,
            optional.size("width"),
            optional.size("height"),
            location.obscured,
            optional.number("elevation", low=-12_000, high=9_000),
            optional.text("observer", limit=200),
            license_text,
        )

    def _license_of(
        self, item: dict[str, Any], optional: fields.OptionalFields
    ) -> tuple[str, str, str]:
        """Name, address and text of an image's license: that of its number in the list, or where
        the file has no list, what the image itself says.
        """
        license_id = item.get("license")
        if not self._licenses and isinstance(license_id, str | None):
            return optional.license()
        if license_id is None or not self._licenses:
            return "", "", ""
        if _scalar(license_id, "license") not in self._licenses:
            raise RecordRefused("license", f"is no license of the file: {fields.shown(license_id)}")
        name, url, text = self._licenses[license_id]
        own = optional.text("license_text", limit=fields.LONGEST_TEXT)
        return name, url, own[: fields.LICENSE_TEXT] or text

    def _species_of(self, key: int) -> str:
        """Return the species of an image's annotations, which must be the same."""
        names = {}
        for number, own_id in self._index.annotations_of(key):
            own = f" (annotation {own_id})" if own_id >= 0 else ""
            if number == NO_CATEGORY:
                raise RecordRefused("category_id", f"its annotation has no category{own}")
            if number not in self._species:
                shown = fields.shown(self._category_ids[number])
                raise RecordRefused("category_id", f"there is no category {shown}{own}")
            names[self._names[number]] = own
        if len(names) > 1:
            listed = ", ".join(name + own for name, own in names.items())
            raise RecordRefused("category_id", f"it is annotated with several species: {listed}")
        return next(iter(names))

    def _category_number(self, category_id: Any, field: str) -> int:
        category_id = _scalar(category_id, field)
        if category_id not in self._category_numbers:
            self._category_numbers[category_id] = len(self._category_ids)
            self._category_ids.append(category_id)
        return self._category_numbers[category_id]

    def _image_key(self, image_id: Any, field: str) -> int:
        key = self._key_or_none(image_id)
        if key is None:
            if image_id is None:
                raise RecordRefused(field, "is missing")
            raise RecordRefused(
                field,
                f"must be an integer from 0 to {2**63 - 1} or a text of at most {MAX_TEXT_ID} "
                f"letters, not {fields.shown(image_id)}",
            )
        return key

    def _key_or_none(self, image_id: Any) -> int | None:
        """Return an integer id itself, or a negative number for a text."""
        if isinstance(image_id, str):
            if not image_id or len(image_id) > MAX_TEXT_ID or has_controls(image_id):
                return None
            if not (image_id.isascii() and image_id.isdigit() and str(int(image_id)) == image_id):
                return self._text_ids.setdefault(image_id, -2 - len(self._text_ids))
            image_id = int(image_id)
        return image_id if _is_id(image_id) else None

    def _shown_key(self, key: int) -> str:
        if key >= 0:
            return str(key)
        return self._texts[-2 - key]


_SINGULAR: Final = {"categories": "category", "licenses": "license", "annotations": "annotation"}


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _scalar(value: Any, field: str) -> Any:
    """Return an id that can be a key of a dict; True would equal 1."""
    if value is None:
        raise RecordRefused(field, "is missing")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RecordRefused(field, f"must be an integer or a text, not {fields.shown(value)}")
    return value


def _with_folder_lineage(species: SpeciesRecord, folder: str) -> SpeciesRecord:
    """Fill unknown ranks from `image_dir_name`, or the genus from a two-word name."""
    try:
        lineage = species_from_folder(folder or species.scientific_name)
    except RecordRefused:
        return species
    blank = {a: getattr(lineage, a) for a in _RANKS.values() if not getattr(species, a)}
    return replace(species, **blank)
