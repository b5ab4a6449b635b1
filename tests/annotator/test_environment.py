import runpy
from pathlib import Path

import pytest
from django.conf import settings

from annotator.environment import BadSetting, Environment, choose_model, misspelled
from tests import ROOT

pytestmark = pytest.mark.pure

WRONG_ADDRESS = (
    "X: '{}' is not a name of its own with an address, such as local=http://127.0.0.1:8001/v1."
)


def test_unset_and_blank_variables_mean_the_default():
    env = Environment({"BLANK": "  "})
    assert env.text("UNSET", "default") == "default"
    assert env.text("BLANK", "default") == "default"
    assert env.flag("BLANK", default=True) is True
    assert env.number("UNSET", 7, minimum=1) == 7
    assert env.words("BLANK", ["a"]) == ["a"]
    assert env.share("BLANK", 0.9) == 0.9


def test_flags_are_read_as_people_write_them():
    for text, meant in (("YES", True), ("1", True), ("off", False), ("False", False)):
        assert Environment({"X": text}).flag("X", default=not meant) is meant


def test_a_value_comes_from_a_file(tmp_path):
    file = tmp_path / "key"
    file.write_text(" secret\n")
    assert Environment({"X_FILE": str(file)}).text("X") == "secret"
    assert Environment({"X_FILE": " "}).text("X", "default") == "default"
    with pytest.raises(BadSetting, match=r"X and X_FILE are both set: remove one of them."):
        Environment({"X": "1", "X_FILE": str(file)}).text("X")
    with pytest.raises(BadSetting, match=r"gone can't be read: No such file or directory."):
        Environment({"X_FILE": str(tmp_path / "gone")}).text("X")
    file.write_bytes(b"\xff")
    with pytest.raises(BadSetting, match="it isn't UTF-8"):
        Environment({"X_FILE": str(file)}).text("X")


def test_rates_are_a_number_in_a_period():
    assert Environment({"X": "6000/minute"}).rate("X") == (6000, 60)
    assert Environment({"X": "5 / second"}).rate("X") == (5, 1)
    assert Environment({}).rate("X") is None


def test_a_wrong_rate_is_named():
    for text in ("60", "0/minute", "-1/minute", "1/year", "a/minute"):
        with pytest.raises(BadSetting, match=r"write a rate such as 6000/minute."):
            Environment({"X": text}).rate("X")


def test_addresses_are_read_with_their_names():
    text = "local=http://127.0.0.1:8001/v1, far = https://models.example/v1?a=b ,"
    assert Environment({"X": text}).addresses("X") == {
        "local": "http://127.0.0.1:8001/v1",
        "far": "https://models.example/v1?a=b",
    }
    assert Environment({}).addresses("X") == {}


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (lambda env: env.flag("X"), "maybe", "X='maybe': write true or false."),
        (lambda env: env.number("X", 1, minimum=1), "1.5", "X='1.5': write a whole number."),
        (
            lambda env: env.number("X", 1, minimum=1, maximum=9),
            "10",
            "X=10: write a number from 1 to 9.",
        ),
        (
            lambda env: env.number("X", 1, minimum=1, maximum=9),
            "0",
            "X=0: write a number from 1 to 9.",
        ),
        *[
            (lambda env: env.share("X", 0.5), text, f"X={text!r}: write a number between 0 and 1.")
            for text in ("0", "1", "nan", "half")
        ],
        (lambda env: env.addresses("X"), "http://a/v1", WRONG_ADDRESS.format("http://a/v1")),
        (lambda env: env.addresses("X"), "a=file:///b", WRONG_ADDRESS.format("a=file:///b")),
        (
            lambda env: env.addresses("X"),
            "a=http://b/v1,a=http://c/v1",
            WRONG_ADDRESS.format("a=http://c/v1"),
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_may_stand_there(read, text, complaint):
    with pytest.raises(BadSetting) as error:
        read(Environment({"X": text}))
    assert str(error.value) == complaint


def test_the_bounds_of_a_number_are_allowed():
    for text in ("1", "9"):
        assert Environment({"X": text}).number("X", 5, minimum=1, maximum=9) == int(text)


@pytest.mark.parametrize(
    ("chosen", "variable", "model"),
    [
        ("", "", ""),
        ("demo", "", "demo"),
        ("demo", "RN50/openai", "RN50/openai"),
    ],
)
def test_commands_take_the_model_that_the_demo_chose(
    tmp_path, monkeypatch, chosen, variable, model
):
    if chosen:
        choose_model(tmp_path, chosen)
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    monkeypatch.setenv("EMBEDDING_MODEL", variable)
    assert runpy.run_path(str(ROOT / "annotator/settings.py"))["EMBEDDING_MODEL"] == model


def test_variables_a_letter_or_two_from_one_that_is_read_are_named():
    typed = {
        "ALLOWED_HOST": "ALLOWED_HOSTS",
        "ALOWED_HOSTS": "ALLOWED_HOSTS",
        "ALLOWED-HOST": "ALLOWED_HOSTS",
        "WEB_PROCESES": "WEB_PROCESSES",
        "DATABASE_ULR": "DATABASE_URL",
        "SECRET_KYE": "SECRET_KEY",
        "SECRET_KYE_FILE": "SECRET_KEY_FILE",
        "SECRET_KEY_FIEL": "SECRET_KEY_FILE",
        "LOGLEVEL": "LOG_LEVEL",
        "VARDIR": "VAR_DIR",
        "EXTRA": "EXTRAS",
        "DEBG": "DEBUG",
    }
    assert misspelled(settings.VARIABLES, typed) == typed
    right = [*settings.VARIABLES, *(f"{name}_FILE" for name in settings.VARIABLES)]
    assert misspelled(settings.VARIABLES, right) == {}


def test_variables_that_systems_set_are_not_taken_for_misspelled_ones():
    lines = Path(__file__).with_name("usual_variables.txt").read_text().splitlines()
    usual = [name for line in lines if not line.startswith("#") for name in line.split()]
    assert len(usual) > 400
    assert misspelled(settings.VARIABLES, usual) == {}
