"""One question to a real server, and what each kind of trouble becomes."""

import io
import logging

import pytest
from PIL import Image as PillowImage

from evaluation.reranking.multimodal import client as client_module
from evaluation.reranking.multimodal.answers import SentImage
from evaluation.reranking.multimodal.client import BadAddress, Client, base_address
from evaluation.reranking.multimodal.prompt import (
    EndpointRefused,
    ImageFailed,
    Unreadable,
    Usage,
    read_reply,
)
from retrieval.images.files import ImageRef
from retrieval.images.storage import image_store
from tests.evaluation.chat_server import ChatServer, expected_score, yes_no
from tests.processes import free_port

pytestmark = pytest.mark.pure

KEY = "a-key-of-tests"
PROMPT = 'Does this image show a fox? Answer with "Yes" or "No" and nothing else.'


@pytest.fixture
def server():
    with ChatServer() as started:
        yield started


@pytest.fixture
def client(server, settings):
    settings.MULTIMODAL_API_KEY = KEY
    # The client waits for as long as the server asks.
    server.retry_after = "0.01"
    with Client(base_url=server.url, model="a/model", timeout=1.0) as made:
        yield made


def ask(client):
    return client.ask(prompt=PROMPT, jpeg=b"\xff\xd8 a picture")


def test_a_request_is_what_the_protocol_asks_for(server, client):
    reply = ask(client)
    (sent,) = server.requests
    assert sent.key == f"Bearer {KEY}"
    assert (sent.prompt, sent.jpeg) == (PROMPT, b"\xff\xd8 a picture")
    rest = {name: value for name, value in sent.body.items() if name != "messages"}
    assert rest == {
        "model": "a/model",
        "max_tokens": 2,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert (reply.score.yes, reply.score.no) == yes_no(sent.prompt, sent.jpeg)
    assert reply.score.score == pytest.approx(expected_score(sent.prompt, sent.jpeg), abs=1e-12)
    assert (reply.usage, reply.usage_known) == (Usage(1, 800, 1), True)
    server.counts_tokens = False
    reply = ask(client)
    assert (reply.usage, reply.usage_known) == (Usage(1, 0, 0), False)


@pytest.mark.parametrize(
    ("mood", "kind", "text"),
    [
        ("no_logprobs", EndpointRefused, "without log-probabilities"),
        ("no_top", EndpointRefused, "top_logprobs"),
        ("404", EndpointRefused, "refuses with status 404"),
        ("redirect", EndpointRefused, "status 307"),
        ("refuse", ImageFailed, "status 400: .*can't open this picture"),
        ("filtered", ImageFailed, "no answer: it ended with 'content_filter'"),
        ("maybe", ImageFailed, "neither yes nor no; .*'Perhaps', 'The'"),
        ("garbage", ImageFailed, "response can't be read"),
    ],
)
def test_what_another_try_would_not_mend(server, client, mood, kind, text):
    server.always = mood
    with pytest.raises(kind, match=text) as raised:
        ask(client)
    assert len(server.requests) == 1
    assert KEY not in str(raised.value)


def test_trouble_that_passes_is_waited_out_and_counted(server):
    server.retry_after = "0.01"
    server.script.extend(["429", "503"])
    again = []
    with Client(
        base_url=server.url, model="m", timeout=1, on_retry=lambda: again.append(1)
    ) as client:
        assert ask(client).usage_known
    assert (len(server.requests), len(again)) == (3, 2)


@pytest.mark.parametrize(("mood", "kind"), [("429", EndpointRefused), ("500", ImageFailed)])
def test_trouble_that_stays_is_named_without_the_key(server, client, mood, kind):
    server.always = mood
    with pytest.raises(kind, match=f"status {mood}: told to: {mood}") as raised:
        ask(client)
    assert len(server.requests) == 1 + client_module.MAX_RETRIES
    assert KEY not in str(raised.value)


def test_a_server_that_is_away_or_slow(server, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_RETRIES", 0)
    with (
        Client(base_url=f"http://127.0.0.1:{free_port()}/v1", model="m", timeout=1) as client,
        pytest.raises(EndpointRefused, match="can't be reached"),
    ):
        ask(client)
    server.always = "slow"
    with (
        Client(base_url=server.url, model="m", timeout=0.2) as client,
        pytest.raises(ImageFailed, match="didn't answer in time"),
    ):
        ask(client)


def test_nothing_of_a_request_is_logged(server, client, caplog):
    # As LOG_LEVEL=DEBUG would have it.
    with caplog.at_level(logging.DEBUG):
        ask(client)
    assert KEY not in caplog.text
    assert "base64" not in caplog.text


def test_a_key_that_is_none_is_named_without_telling_it(settings):
    settings.MULTIMODAL_API_KEY = "se\ncret"
    with pytest.raises(EndpointRefused) as raised:
        Client(base_url="http://127.0.0.1:9/v1", model="m", timeout=1)
    assert "cret" not in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        None, "text", {"choices": []}, {"choices": [3]}, {"choices": {"0": {}}},
        {"choices": [{"logprobs": {"content": [{"token": "Yes", "top_logprobs": [4]}]}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [
            {"token": "Yes", "logprob": "high"}]}]}}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [
            {"token": "Yes", "logprob": 2.0}]}]}}]},
    ],
)  # fmt: skip
def test_no_response_is_taken_for_what_it_is_not(data):
    with pytest.raises(Unreadable):
        read_reply(data)


def test_a_blank_first_token_is_passed_over():
    def token(text, top):
        pairs = [{"token": one, "logprob": value} for one, value in top]
        return {"token": text, "logprob": -0.1, "top_logprobs": pairs}

    content = [
        token("\n", [("\n", -0.1), ("No", -3.0)]),
        token("Yes", [("Yes", -0.5), ("No", -1.5)]),
    ]
    reply = read_reply({"choices": [{"logprobs": {"content": content}}]})
    assert (reply.score.yes, reply.score.no) == (-0.5, -1.5)


@pytest.mark.parametrize(
    "text",
    [
        "", "models.example/v1", "file:///etc/passwd", "http://",
        "https://user:secret@models.example/v1", "https://models.example/v1?key=secret",
        "https://models.example/#a", "http://[::1", "http://a:port/", "https://a/" + "b" * 300,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadAddress):
        base_address(text)
    assert base_address(" http://127.0.0.1:8001/v1/ ") == "http://127.0.0.1:8001/v1"


def photo(width, height, format="JPEG", mode="RGB"):
    data = io.BytesIO()
    PillowImage.effect_noise((width, height), 60).convert(mode).save(data, format)
    return data.getvalue()


def stored(data, side):
    image = image_store(data)
    return SentImage(ImageRef(image.sha256, None, ""), image.width, image.height, side)


def test_an_image_that_fits_is_sent_as_it_is_shown(var_dir):
    data = photo(60, 40)
    image = stored(data, side=60)
    assert image.jpeg() == data
    assert image.fingerprint == image.ref.sha256
    image = stored(photo(60, 40, "PNG"), side=60)
    with PillowImage.open(io.BytesIO(image.jpeg())) as sent:
        assert (sent.format, sent.size) == ("JPEG", (60, 40))


def test_a_larger_image_is_sent_smaller(var_dir):
    image = stored(photo(60, 40, "PNG", "RGBA"), side=30)
    with PillowImage.open(io.BytesIO(image.jpeg())) as sent:
        assert (sent.format, sent.size, sent.mode) == ("JPEG", (30, 20), "RGB")
    other = SentImage(image.ref, 60, 40, 31)
    assert len({image.fingerprint, other.fingerprint, image.ref.sha256}) == 3
