import json
import os
import random
import re

import pytest

from retrieval.importing import json_text
from retrieval.importing.json_stream import JsonFile
from retrieval.importing.records import ImportRefused


def read(tmp_path, text):
    """What the file holds, a list's items one by one with their positions."""
    path = tmp_path / "x.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = []
    for name, first, value in JsonFile(path).blocks():
        if first is None:
            found.append((name, None, value))
        else:
            found += [(name, place, item) for place, item in enumerate(value, start=first)]
    return found


def test_lists_come_in_runs_and_the_rest_whole(tmp_path):
    text = '{"a": 1, "b": {"c": [1, {"d": 2}]}, "l": [{"e": [1]}, 3, [4, [5]]], "m": [], "n": null}'
    assert read(tmp_path, text) == [
        ("a", None, 1),
        ("b", None, {"c": [1, {"d": 2}]}),
        ("l", None, []),
        ("l", 1, {"e": [1]}),
        ("l", 2, 3),
        ("l", 3, [4, [5]]),
        ("m", None, []),
        ("n", None, None),
    ]


def test_a_list_can_be_read_again(tmp_path):
    path = tmp_path / "x.json"
    items = [{"id": number, "name": "ä" * (number % 7)} for number in range(50_000)]
    path.write_text(json.dumps({"ö": 1, "l": items, "m": [1], "k": []}, ensure_ascii=False))
    file = JsonFile(path)
    told = []
    first = [
        value for name, at, value in file.blocks(lambda *bytes_: told.append(bytes_))
        if name == "l" and at is not None
    ]  # fmt: skip
    assert [item for run in first for item in run] == items
    # In few runs, not item by item, and every byte is told of.
    assert len(first) < 20
    size = path.stat().st_size
    assert told == sorted(told)
    assert told[0] == (0, size)
    assert told[-1] == (size, size)
    assert [item for run in file.list_blocks("l") for item in run] == items
    assert list(file.list_blocks("k")) == list(file.list_blocks("none")) == []
    os.utime(path, ns=(1, 1))
    with pytest.raises(ImportRefused, match="has changed while it was read"):
        list(file.list_blocks("l"))


def test_a_list_named_twice_is_read_twice(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"l": [1, 2], "m": 0, "l": [3]}')
    file = JsonFile(path)
    list(file.blocks())
    assert list(file.list_blocks("l")) == [[1, 2], [3]]


_HARD = [
    {"id": 1, "text": "}, {", "deep": [{"a": 1}, {"b": [{"c": "}, {"}, {"d": 2}]}]},
    {"id": -1.5e-7, "text": '\\"}, {\\', "none": None, "yes": True},
    {},
    "}, {",
    [{"x": 1}, {"y": 2}],
    12345678901234567890123,
    0.1,
    {"id": "ünï\u2028cödé 🐻 \u0000", "n": [[], {}, [[{}]]]},
    -0.0,
]


@pytest.mark.parametrize("window", [16, 17, 61, 256, 4096])
@pytest.mark.parametrize("indent", [None, 0, 1])
def test_windows_and_what_looks_like_a_boundary_change_nothing(
    tmp_path, monkeypatch, window, indent
):
    monkeypatch.setattr(json_text, "WINDOW", window)
    drawn = random.Random(window)
    items = [drawn.choice(_HARD) for _ in range(300)] + [{"id": n} for n in range(300)]
    whole = {"before": [1, "2"], "l": items, "after": {"l": [1]}}
    for ascii_only in (True, False):
        found = read(tmp_path, json.dumps(whole, indent=indent, ensure_ascii=ascii_only))
        assert [item for name, place, item in found if name == "l" and place] == items
        assert found[-1] == ("after", None, {"l": [1]})
        assert [place for name, place, _ in found if name == "l"][1:] == list(range(1, 601))


def test_blanks_of_any_kind_may_stand_between(tmp_path):
    text = '\n{ "l"\t:\r\n[ {"a":1}\n,\n\n{"a":2} , {"a":3},{"a":4}\t]\n}\n \n'
    assert [item for *_, item in read(tmp_path, text)[1:]] == [{"a": n} for n in (1, 2, 3, 4)]


def test_integers_beyond_64_bits_are_read_wherever_they_stand(tmp_path):
    plain = [{"id": number, "place": [0.5, -0.0], "name": "x" * 100} for number in range(2000)]
    listed = [*plain, {"id": 2**63, "place": [-(10**30)]}, *plain]
    found = read(tmp_path, json.dumps({"n": 1, "l": listed, "m": 2**64}))
    assert found[:2] == [("n", None, 1), ("l", None, [])]
    assert found[2:-1] == [("l", place, item) for place, item in enumerate(listed, start=1)]
    assert found[-1] == ("m", None, 2**64)
    assert {type(item["place"][0]) for _, _, item in found[2:-1]} == {float, int}


def test_a_hundred_levels_are_read(tmp_path):
    deepest = read(tmp_path, '{"a": ' + "[" * 99 + "7" + "]" * 99 + "}")
    assert str(deepest[0]) == "('a', None, [])"
    boxes = [{"box": [1, 2], "at": {"x": [3]}} for _ in range(200)]
    deep = json.loads("[" * 97 + "7" + "]" * 97)
    found = read(tmp_path, json.dumps({"a": [*boxes, {"deep": deep}, *boxes]}))
    assert len(found) == 402
    with pytest.raises(ImportRefused, match="nested deeper than 100"):
        read(tmp_path, json.dumps({"a": [*boxes, {"deep": [deep]}, *boxes]}))


def test_a_byte_order_mark_is_passed_over(tmp_path):
    assert read(tmp_path, b'\xef\xbb\xbf{"a": 1.5}') == [("a", None, 1.5)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1, column 1:"),
        ("  \n ", "line 2, column 2:"),
        ('{"a": 1', "line 1, column 8:"),
        ('{"images": [{"id": 1},\n {"id": 2\n', "line 3, column 1:"),
        ('{"a": 1} {"b": 2}', "line 1, column 10: Extra data"),
        ('{"a": 1}x', "line 1, column 9: Extra data"),
        ('{"a": 1,}', "line 1, column 9: Expecting property name"),
        ('{"a" 1}', "line 1, column 6: Expecting ':'"),
        ('{"a": 1 "b": 2}', "line 1, column 9: Expecting ','"),
        ('{"a": [1 2]}', "line 1, column 10: Expecting ','"),
        ('{"a": [1, ]}', "line 1, column 11: Expecting value"),
        ('{"a": [{"b": 1}, {"b": 1} {"b": 1}]}', "line 1, column 27: Expecting ','"),
        ('{"a": NaN}', "line 1, column 7: NaN is no JSON value"),
        ('{"a": [{"b": 1}, {"b": -Infinity}]}', "-Infinity is no JSON value"),
        ('{"a": ' + "9" * 5000 + "}", r"column 7: Exceeds the limit \(4300 digits\)"),
        ('{"a": [{}, {"b": ' + "9" * 5000 + "}]}", r"Exceeds the limit \(4300 digits\)"),
        ('{"a": 9223372036854775808, "b": }', "line 1, column 33:"),
        ('{"a": ' + "[" * 90 + "1" + "]" * 90 + "x", "line 1, column 188:"),
        ('{"a": ' + "[" * 20_000 + "x", "nested deeper than 100"),
        ('{"a": 1e400, "b": ' + "[" * 20_000, "1e400 is too large for a floating point"),
        ('{"a": [{}, {"b": 1e400}]}', "1e400 is too large for a floating point"),
        ('{"a": ' + '{"b":' * 200_000, "nested deeper than 100"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested deeper than 100"),
        (b'{"a": "\xff"}', "not valid JSON: byte 8 is not UTF-8"),
        (b'{"a": "' + b"x" * 600_000 + b'\xe2\x82"}', "byte 600,008 is not UTF-8"),
        (b'{"a": "\xe2\x82', "byte 8 is not UTF-8"),
        ("[1, 2]", "no JSON object"),
        ('"images"', "no JSON object"),
    ],
)
def test_malformed_json_is_refused_with_its_place(tmp_path, text, says):
    with pytest.raises(ImportRefused, match=says) as refused:
        read(tmp_path, text)
    assert refused.value.file.endswith("x.json")


@pytest.mark.parametrize(
    "end",
    [
        '{"id": 2, "name": }]}',
        '\n\n {"id": 2, "name": }]}',
        '{"id": 2, "name": "x\ny"}]}',
        '{"id": 2, "name": "\\q"}]}',
        '{"id": 2, "name": "\\u12"}]}',
        '{"id": 2, "na',
        '{"id": 02}]}',
        "{}]}]",
    ],
)
def test_the_place_is_right_far_into_a_file(tmp_path, end):
    text = '{"l": [' + '{"id": 1, "name": "a bär"},\n ' * 30_000 + end
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(text)
    found = error.value
    place = f"line {found.lineno}, column {found.colno}: {found.msg}. Nothing was imported."
    with pytest.raises(ImportRefused, match=re.escape(place)):
        read(tmp_path, text)


def test_a_file_is_as_valid_as_python_says(tmp_path):
    """Files with one letter changed are read as Python reads them, or refused as Python does."""
    text = '{"l": [{"a": 1, "b": "x\\n"}, {"a": -2.5e3, "b": [true, null]}, {"a": {}}], "m": "ö"}'
    drawn = random.Random(5)
    refused = 0
    for _ in range(3000):
        at = drawn.randrange(1, len(text))
        changed = text[:at] + drawn.choice('{}[],:"\\ 019.eE+-tfnu\n') + text[at + 1 :]
        try:
            wanted = json.loads(changed)
        except ValueError as error:
            refused += 1
            place = rf"line {error.lineno}, column {error.colno}: "
            with pytest.raises(ImportRefused, match=place):
                read(tmp_path, changed)
            continue
        found = {}
        for name, place, value in read(tmp_path, changed):
            if place is None:
                found[name] = value
            else:
                found[name].append(value)
        assert found == wanted
    assert 1000 < refused < 2900


def test_a_single_value_has_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "WINDOW", 100)
    monkeypatch.setattr(json_text, "LONGEST_VALUE", 1000)
    assert len(read(tmp_path, json.dumps({"a": ["x" * 900]}))) == 2
    with pytest.raises(ImportRefused, match="a value of more than 1,000 letters"):
        read(tmp_path, json.dumps({"a": ["x" * 5000]}))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ImportRefused, match="cannot be read"):
        JsonFile(tmp_path / "none.json")
