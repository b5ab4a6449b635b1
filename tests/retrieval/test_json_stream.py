import json

import pytest

from retrieval.importing.json_stream import items, sections
from retrieval.importing.records import ImportRefused


def read(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(sections(path))


def test_lists_come_item_by_item_and_the_rest_whole(tmp_path):
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


def test_integers_beyond_64_bits_are_read_wherever_they_stand(tmp_path):
    plain = [{"id": number, "place": [0.5, -0.0], "name": "x" * 100} for number in range(2000)]
    listed = [*plain, {"id": 2**63, "place": [-(10**30)]}, *plain]
    (tmp_path / "x.json").write_text(json.dumps({"n": 1, "l": listed, "m": 2**64}))
    found = list(sections(tmp_path / "x.json"))
    assert found[:2] == [("n", None, 1), ("l", None, [])]
    assert found[2:-1] == [("l", place, item) for place, item in enumerate(listed, start=1)]
    assert found[-1] == ("m", None, 2**64)
    assert list(items(tmp_path / "x.json", "l")) == listed
    assert {type(item["place"][0]) for item in items(tmp_path / "x.json", "l")} == {float, int}


def test_a_hundred_levels_are_read(tmp_path):
    deepest = read(tmp_path, '{"a": ' + "[" * 99 + "7" + "]" * 99 + "}")
    assert str(deepest[0]) == "('a', None, [])"


def test_a_byte_order_mark_is_passed_over(tmp_path):
    assert read(tmp_path, b'\xef\xbb\xbf{"a": 1.5}') == [("a", None, 1.5)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1, column 1"),
        ('{"a": 1', "line 1, column 8"),
        ('{"images": [{"id": 1},\n {"id": 2\n', "line 3, column 1"),
        ('{"a": 1} {"b": 2}', "line 1, column 10"),
        ('{"a": NaN}', "not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "Unexpected symbol '9999"),
        ('{"a": 9223372036854775808, "b": }', "line 1, column 33"),
        ('{"a": ' + "[" * 90 + "1" + "]" * 90 + "x", "line 1, column 188"),
        ('{"a": ' + "[" * 20_000 + "x", "nested deeper than 100"),
        ('{"a": 1e400, "b": ' + "[" * 20_000, "floating point"),
        ('{"a": ' + '{"b":' * 200_000, "nested deeper than 100"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested deeper than 100"),
        (b'{"a": "\xff"}', "not valid JSON"),
        ("[1, 2]", "no JSON object"),
        ('"images"', "no JSON object"),
    ],
)
def test_malformed_json_is_refused_with_its_place(tmp_path, text, says):
    with pytest.raises(ImportRefused, match=says) as refused:
        read(tmp_path, text)
    assert refused.value.file.endswith("x.json")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ImportRefused, match="cannot be read"):
        list(sections(tmp_path / "none.json"))
