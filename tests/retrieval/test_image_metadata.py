"""What is said in a file of an image beside its pixels doesn't leave the application."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from evaluation.reranking.multimodal.answers import SentImage as SentImage
from releases.making.images import released_image_bytes
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageRef, display_file, thumbnail_file
from retrieval.images.metadata import without_metadata
from retrieval.images.storage import display_path, image_store, thumbnail_path
from tests.retrieval.making import encoded, image_row, jpeg
from tests.retrieval.rooted import folder_root, rooted

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SECRETS = (b"Ada Lovelace", b"SN-4711-0815", b"at the old oak")
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>at the old oak</rdf:RDF></x:xmpmeta>'
KINDS = ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "AVIF", "MPO", "JPEG2000"]


def exif(orientation=1):
    """EXIF with a name, a serial number, a place and a thumbnail."""
    found = Image.Exif()
    found[0x0112], found[0x013B] = orientation, "Ada Lovelace"
    found.get_ifd(0x8769)[0xA431] = "SN-4711-0815"
    found.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 36.0)})
    return found


def noise(size=(64, 48), mode="RGB"):
    shape = (size[1], size[0], 4 if mode == "RGBA" else 3)
    pixels = np.random.default_rng(7).integers(0, 255, shape, dtype=np.uint8)
    return Image.fromarray(pixels).resize(size).convert(mode)


def telling(kind, orientation=1, image=None):
    """A file that says everything that its format can say."""
    image = image or noise()
    options = {"exif": exif(orientation), "icc_profile": PROFILE, "xmp": XMP}
    if kind == "PNG":
        texts = PngImagePlugin.PngInfo()
        texts.add_text("Author", "Ada Lovelace")
        texts.add_text("Comment", "at the old oak", zip=True)
        texts.add_itxt("XML:com.adobe.xmp", XMP.decode())
        return encoded(image, kind, pnginfo=texts, **options) + b"at the old oak"
    if kind == "JPEG":
        data = encoded(image, kind, quality=90, comment=b"at the old oak", **options)
        iptc = b"Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x11\x1c\x02\x50\0\x0cAda Lovelace"
        preview = b"JFXX\0\x10" + jpeg("red", (8, 8), comment=b"SN-4711-0815")
        for marker, body in ((0xED, iptc), (0xE0, preview), (0xEB, b"SN-4711-0815")):
            head = struct.pack(">BBH", 0xFF, marker, len(body) + 2)
            data = data[:20] + head + body + data[20:]
        return data + b"SN-4711-0815"
    if kind == "MPO":
        extra = noise((8, 8))
        extra.encoderinfo = {"exif": exif()}
        return encoded(image, kind, save_all=True, append_images=[extra], quality=90, **options)
    if kind == "GIF":
        return encoded(image.convert("P"), kind, comment=b"at the old oak", xmp=XMP)
    if kind == "TIFF":
        options |= {"artist": "Ada Lovelace", "description": "at the old oak"}
    if kind == "WEBP":
        options["lossless"] = True
    if kind == "JPEG2000":
        return encoded(image, kind, comment="at the old oak")
    return encoded(image, kind, **options)


def read(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def assert_clean(data, profile=PROFILE):
    image = read(data)
    assert not any(secret in data for secret in SECRETS)
    for secret in (b"Exif", b"http://ns.adobe.com", b"8BIM", b"eXIf", b"EXIF", b"XMP ", b"JFXX"):
        assert secret not in data
    assert dict(image.getexif()) == {}
    assert image.info.get("icc_profile") == profile
    told = {"exif", "xmp", "comment", "photoshop", "XML:com.adobe.xmp", "Author", "Comment"}
    assert not told & image.info.keys()
    return image


def pixels(data):
    return np.asarray(read(data).convert("RGB"), np.int16)


@pytest.mark.parametrize("kind", KINDS)
def test_an_upright_image_keeps_every_pixel_and_its_profile(kind):
    data = telling(kind)
    assert any(secret in data for secret in SECRETS)
    clean = without_metadata(data, max_pixels=10**6)
    image = assert_clean(clean, None if kind in ("GIF", "JPEG2000") else PROFILE)
    assert np.array_equal(pixels(clean), pixels(data))
    kept = {"JPEG": "JPEG", "MPO": "JPEG", "PNG": "PNG", "WEBP": "WEBP"}
    assert image.format == kept.get(kind, "PNG")


@pytest.mark.parametrize("kind", [one for one in KINDS if one not in ("GIF", "JPEG2000")])
def test_a_turned_image_is_upright_afterwards(kind):
    upright = Image.new("RGB", (64, 48), "red")
    upright.paste("blue", (0, 24, 64, 48))
    turned = telling(kind, 6, upright.transpose(Image.Transpose.ROTATE_90))
    clean = without_metadata(turned, max_pixels=10**6)
    image = assert_clean(clean)
    assert image.size == (64, 48)
    # Colors run at the edge between the halves, as JPEG and AVIF halve their resolution.
    assert np.abs(pixels(clean) - np.asarray(upright, np.int16)).mean() < 5
    assert image.getpixel((5, 5))[0] > 240 < image.getpixel((5, 40))[2]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_png_keeps_its_transparency_and_depth(mode, orientation):
    source = noise(mode="RGBA")
    if mode == "I;16":
        source = Image.fromarray(np.arange(64 * 48, dtype=np.uint16).reshape(48, 64) * 21)
    else:
        source = source.convert(mode)
    data = encoded(source, "PNG", exif=exif(orientation))
    clean = read(without_metadata(data, max_pixels=10**6))
    wanted = source if orientation == 1 else source.transpose(Image.Transpose.ROTATE_270)
    assert clean.mode == source.mode
    assert np.array_equal(np.asarray(clean), np.asarray(wanted))


def test_an_orientation_behind_the_pixels_of_a_png_is_applied():
    data = encoded(noise(), "PNG")
    turning = exif(6).tobytes()[6:]
    chunk = b"eXIf" + turning
    late = struct.pack(">I", len(turning)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    end = data.index(b"IEND") - 4
    clean = without_metadata(data[:end] + late + data[end:], max_pixels=10**6)
    assert read(clean).size == (48, 64)
    assert not any(secret in clean for secret in SECRETS)


def with_stray_bytes():
    """A JPEG that a lenient reader takes: bytes between its segments that belong to none."""
    data = telling("JPEG")
    place = data.index(b"\xff\xc0", data.index(PROFILE[-60:]))
    return data[:place] + b"at the old oak" + data[place:]


def animated():
    frames = {"save_all": True, "append_images": [Image.new("RGB", (64, 48), "red")]}
    return encoded(noise(), "WEBP", lossless=True, exif=exif(), **frames)


@pytest.mark.parametrize("data", [with_stray_bytes(), animated()], ids=["JPEG", "WEBP"])
def test_what_cannot_be_taken_apart_is_written_anew(data):
    clean = without_metadata(data, max_pixels=10**6)
    assert not any(secret in clean for secret in SECRETS)
    assert np.abs(pixels(clean) - pixels(data)).mean() < 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_broken_files_never_leave_raw(kind):
    data = telling(kind)
    rng = np.random.default_rng(3)
    for _ in range(100):
        broken = bytearray(data[: rng.integers(20, len(data))])
        for place in rng.integers(0, len(broken), 3):
            broken[place] = rng.integers(256)
        try:
            clean = without_metadata(bytes(broken), max_pixels=10**6)
        except ImageRefused:
            continue
        assert not any(secret in clean for secret in SECRETS[:2])


def everything_served(ref, client, row):
    """All bytes of an image that reach somebody."""
    for file in (display_file(ref), thumbnail_file(ref)):
        yield file.read()
    for address in (row.url, row.thumbnail_url):
        yield b"".join(client.get(address).streaming_content)
    for side in (20, 1000):
        yield SentImage(ref, row.width, row.height, side).jpeg()
    yield released_image_bytes(row.pk, row.file_name, row.sha256)


@pytest.mark.django_db
@pytest.mark.parametrize("place", ["store", "root"])
@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
def test_nothing_that_is_served_tells(kind, orientation, place, store, tmp_path, client, annotator):
    client.force_login(annotator)
    upright = Image.new("RGB", (64, 48), "red")
    upright.paste("blue", (0, 24, 64, 48))
    stored = upright if orientation == 1 else upright.transpose(Image.Transpose.ROTATE_90)
    data = telling(kind, orientation, stored)
    name = f"1.{kind.lower()}"
    if place == "store":
        found = image_store(data)
        row = image_row(1, sha256=found.sha256, file_name=name, width=64, height=48)
    else:
        row = rooted(1, folder_root(tmp_path / "data", {name: data}), name, width=64, height=48)
    for served in everything_served(ImageRef.of(row), client, row):
        image = assert_clean(served)
        assert image.width > image.height
        left = np.asarray(image.convert("RGB"), np.int16)
        assert np.abs(left[2, 2] - (255, 0, 0)).max() < 16
        assert np.abs(left[-3, 2] - (0, 0, 255)).max() < 16


@pytest.mark.django_db
def test_copies_of_earlier_versions_leave_clean(store):
    ref = ImageRef(image_store(telling("PNG")).sha256, None, "")
    for path in (display_path(ref.sha256), thumbnail_path(ref.sha256)):
        path.write_bytes(telling("JPEG"))
    for file in (display_file(ref), thumbnail_file(ref)):
        assert_clean(file.read())
