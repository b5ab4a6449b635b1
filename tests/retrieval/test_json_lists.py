"""Lists of a large JSON file, item by item."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.importing.json_lists import MAX_DEPTH, MOST_LISTS, JsonLists
from retrieval.importing.records import ImportRefused

pytestmark = pytest.mark.pure

Write = Callable[[str | bytes], Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    """Writes a file of this content."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "x.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def list_items(path: Path, name: str) -> Iterator[Any]:
    """The items of a file's list."""
    return JsonLists(path).items(name)


def test_the_items_of_one_list_are_read(file: Write) -> None:
    text = '{"a": 1, "b": {"l": [5]}, "l": [{"e": [1]}, 3, [4, [5.5]], null], "m": []}'
    path = file(text)
    assert list(list_items(path, "l")) == [{"e": [1]}, 3, [4, [5.5]], None]
    assert list(list_items(path, "m")) == list(list_items(path, "none")) == []
    # A list named twice is read twice, and a byte order mark is passed over.
    assert list(list_items(file('{"l": [1, 2], "m": 0, "l": [3]}'), "l")) == [1, 2, 3]
    assert list(list_items(file(b'\xef\xbb\xbf{"l": [1.5]}'), "l")) == [1.5]


def test_every_byte_is_reported_and_the_file_is_not_held(file: Write) -> None:
    items = [{"id": number, "name": "ä" * 250} for number in range(10_000)]
    path = file(json.dumps({"l": items}, ensure_ascii=False))
    size = path.stat().st_size
    read: list[int] = []
    tracemalloc.start()
    lists = JsonLists(path, read.append)
    assert sum(read) == size
    found = sum(item == items[at] for at, item in enumerate(lists.items("l", read.append)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, sum(read)) == (len(items), 2 * size - len('{"l": }'))
    assert len(read) > 20
    assert peak < size / 5


def test_the_kinds_of_members(file: Write) -> None:
    text = '{"a": 1, "b": {"c": []}, "l": [{"e": [1]}], "n": null, "s": "x", "t": true}'
    assert JsonLists(file(text)).kinds == {
        "a": "number", "b": "start_map", "l": "start_array", "n": "null", "s": "string",
        "t": "boolean",
    }  # fmt: skip


@pytest.mark.parametrize("before", ["", '{"id": 1, "name": "a bär"},\n ' * 10_000])
@pytest.mark.parametrize(
    ("end", "line", "reason"),
    [
        ("", 0, "premature EOF"),
        ('\n\n {"id": 2, "name": }]}', 2, "unallowed token"),
        ('{"id": 2, "name": "x\ny"}]}', 0, "invalid character inside string"),
        ('{"id": 02}]}', 0, "after key and value"),
        ('{"id": NaN}]}', 0, "invalid char in json text"),
        ('{"id": 1e400}]}', 0, "overflow"),
        ('{"id": 9223372036854775808}]}', 0, "integer overflow"),
        ("{}]}]", 0, "trailing garbage"),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(
    file: Write, before: str, end: str, line: int, reason: str
) -> None:
    path = file('{"l": [' + before + end)
    at = before.count("\n") + 1 + line
    with pytest.raises(ImportRefused, match=f"not valid JSON: line {at}: .*{reason}.*Nothing was"):
        list(list_items(path, "l"))


@pytest.mark.parametrize(
    "text",
    [
        '{"l": [1], "m": {"n": 1]}',
        '{"l": [1], "m": [{"n": 1}}}',
        '{"l": [1], "l" [2]}',
        '{"l": [1] "m": 2}',
        '{"l": [1]}}',
        '{"l": [1], "m": {"n": "]"}',
    ],
)
def test_a_file_is_json_around_its_lists(file: Write, text: str) -> None:
    with pytest.raises(ImportRefused, match="not valid JSON: line 1"):
        JsonLists(file(text))


def test_names_with_dots_and_lists_inside_objects_are_no_lists_of_the_file(file: Write) -> None:
    path = file('{"a.b": [0], "c": {"l": [1], "d": [{"l": [2]}]}, "l": [3, [4]]}')
    assert [list(list_items(path, name)) for name in ("a.b", "c", "l")] == [[0], [], [3, [4]]]


def test_an_object_of_very_many_lists_is_refused(file: Write) -> None:
    text = ", ".join(f'"{number}": []' for number in range(MOST_LISTS + 1))
    with pytest.raises(ImportRefused, match=f"more than {MOST_LISTS} lists"):
        JsonLists(file(f"{{{text}}}"))


def test_what_cannot_be_read_is_refused(file: Write, tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="line 2: invalid bytes in UTF8 string"):
        list(list_items(file(b'{"l": [\n"\xff"]}'), "l"))
    with pytest.raises(ImportRefused, match="cannot be read"):
        list(list_items(tmp_path / "none.json", "l"))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("name", ["l", "other"])
def test_deep_nesting_is_refused_before_it_takes_memory(
    file: Write, opening: str, closing: str, name: str
) -> None:
    def nested(levels: int) -> Path:
        # The file's object and the list are two levels. A million characters: several blocks.
        text = opening * (levels - 2) + "0" + closing * (levels - 2)
        return file(f'{{"{name}": [{text}, "{" " * 10**6}", {text}]}}')

    assert sum(1 for _ in list_items(nested(MAX_DEPTH), "l")) == (3 if name == "l" else 0)
    with pytest.raises(ImportRefused, match=r"more than 64 levels deep\. Nothing was imported"):
        list(list_items(nested(MAX_DEPTH + 1), "l"))
    tracemalloc.start()
    with pytest.raises(ImportRefused, match="nested"):
        list(list_items(nested(100_000), "l"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_depth_is_followed_over_closed_lists_and_from_block_to_block(file: Write) -> None:
    with pytest.raises(ImportRefused, match="nested"):
        list(list_items(file('{"l": [' + ("[[]," + " " * 10_000) * 100), "l"))


@pytest.mark.parametrize("shift", [0, 3, 5])
def test_brackets_in_strings_are_not_nesting(file: Write, shift: int) -> None:
    texts = ["[{" * 100, "]}" * 100, '\\" [[', "\\\\", "ü [", '\\\\" {', ""]
    items = texts * 1_000
    path = file(f'{{{" " * shift}"l": {json.dumps(items)}}}')
    assert list(list_items(path, "l")) == items
    deep = json.dumps({"a": "]", "b": '\\"}'})[:-1] + ', "c": '
    with pytest.raises(ImportRefused, match="nested"):
        list(list_items(file(f'{{"l": {json.dumps(items)[:-1]}, {deep * 100}'), "l"))
