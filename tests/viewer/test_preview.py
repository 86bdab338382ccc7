"""The preview, decoded again: as many frames at the same times, bars in their colours, a playhead that moves."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.viewer.preview import (
    MOST_LANES,
    PAPER,
    Chips,
    Strip,
    preview_pages,
    preview_size,
    text_image,
    write_preview,
)
from temporalzoom.viewer.style import INK, class_colours

av = pytest.importorskip("av")
QUIET = Console(quiet=True)
FOUND = Segments([1.0, 2.0, 0.5], [2.0, 3.5, 1.0], ["jump", "run", "jump"], [0.9, 0.5, 0.25])
COLOURS = class_colours(["jump", "run"])


def rgb(colour: str) -> np.ndarray:
    return 255 * np.array(to_rgb(colour))


def decoded(path):
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [
            (float(f.pts * f.time_base), f.to_ndarray(format="rgb24").astype(float)) for f in container.decode(stream)
        ]
        return frames, float(stream.duration * stream.time_base) if stream.duration else None


def test_what_was_written_is_what_one_sees(tmp_path):
    """A variable rate: 10 frames a second for 2 s, then 20, as 48 x 64 pixels on a page of 320."""
    times = [*np.arange(0, 2, 0.1), *np.arange(2, 4, 0.05)]
    write_preview(
        ((t, np.full((48, 64, 3), 120, np.uint8)) for t in times),
        FOUND,
        tmp_path / "p.mp4",
        duration=4.0,
        console=QUIET,
    )
    frames, duration = decoded(tmp_path / "p.mp4")
    np.testing.assert_allclose([seconds for seconds, _ in frames], times, atol=1e-4)
    assert duration == pytest.approx(4.0, abs=0.11)
    strip = Strip(FOUND, COLOURS, 4.0, 320)
    row = {label: 48 + strip.top_of(label) + strip.bar // 2 for label in COLOURS}

    for seconds, image in frames:
        assert image.shape == (48 + strip.height, 320, 3)
        np.testing.assert_allclose(image[40, 160], 120, atol=8)
        for label, at, shown in (("jump", 1.5, True), ("jump", 0.75, True), ("jump", 2.6, False), ("run", 2.75, True)):
            if abs(strip.column(seconds) - strip.column(at)) > 8:  # not below the playhead
                pixels = image[row[label] - 2 : row[label] + 2, strip.column(at) - 2 : strip.column(at) + 3]
                apart = np.abs(pixels.mean((0, 1)) - rgb(COLOURS[label])).max()
                assert apart < 30 if shown else apart > 60, (seconds, label, at)
        # The playhead: the darkest column of a line without bars.
        line = image[-4:-2, strip.left - 2 : strip.right].mean((0, 2))
        assert abs(int(line.argmin()) + strip.left - 2 - strip.column(seconds)) <= 2, seconds


def test_the_time_line_is_linear_and_holds_every_class():
    strip = Strip(FOUND, COLOURS, 4.0, 640)
    assert strip.column(0) == strip.left and strip.column(4) == strip.column(9) == strip.right - 1
    assert strip.column(2) == pytest.approx((strip.left + strip.right - 1) / 2, abs=1)
    for label, colour in COLOURS.items():
        line = strip.image[strip.top_of(label)]
        shown = np.flatnonzero((np.abs(line - rgb(colour)) < 1).all(1))
        wanted = {c for s, e, name, _ in FOUND if name == label for c in range(strip.column(s), strip.column(e))}
        assert set(shown) == wanted
    target = np.empty_like(strip.image)
    strip.draw(target, 1.0)
    changed = np.flatnonzero((target != strip.image).any((0, 2)))
    assert set(changed) == {strip.column(1.0) - 1, strip.column(1.0)}
    assert (np.abs(target[2, changed] - rgb(INK)) < 1).all()
    names = [f"class {i:02d}" for i in range(100)]
    many = Strip(Segments(np.arange(100), np.arange(100) + 1, names), class_colours(names), 100.0, 640)
    assert many.height < 300 and many.top_of("class 99") + many.bar <= many.height
    assert Strip(Segments.empty(), {}, 4.0, 640).height > 0


def columns(strip: Strip, line: int, colour: str) -> set[int]:
    return set(np.flatnonzero((np.abs(strip.image[line] - rgb(colour)) < 1).all(1)).tolist())


def test_overlapping_segments_of_one_class_have_a_lane_each():
    jumps = Segments([0, 2, 6.0], [4, 5, 8.0], ["jump"] * 3, [0.5, 0.9, 0.4])
    strip = Strip(Segments.concatenate([jumps, Segments([1.0], [9.0], ["run"])]), COLOURS, 10.0, 640)
    for lane, spans in enumerate(([(2, 5), (6, 8)], [(0, 4)])):  # the highest score is on top
        wanted = {c for s, e in spans for c in range(strip.column(s), strip.column(e))}
        for line in (strip.top_of("jump", lane), strip.top_of("jump", lane) + strip.bar - 1):
            assert columns(strip, line, COLOURS["jump"]) == wanted
    assert strip.top_of("run") == strip.top_of("jump", 2)  # below both of them
    assert columns(strip, strip.top_of("run"), COLOURS["run"]) == set(range(strip.column(1), strip.column(9)))


def test_lanes_of_one_class_are_limited():
    crowd = Segments(np.zeros(9), np.full(9, 3.0), ["jump"] * 9, np.linspace(0.1, 0.9, 9))
    strip, four = Strip(crowd, COLOURS, 4.0, 640), Strip(crowd.top(MOST_LANES), COLOURS, 4.0, 640)
    assert strip.height == four.height
    assert strip.left > four.left  # its name has the number of those left out


def test_the_colour_of_a_class_does_not_depend_on_what_was_found():
    """Two models with the same classes, of which one finds less: the same colour for what both find."""
    picture = [(0.0, np.zeros((32, 320, 3), np.uint8))]
    classes = ["walk", "run", "jump"]
    for found in (Segments([0], [4.0], ["run"]), Segments([0, 0], [4.0, 4.0], ["run", "jump"])):
        ((_, page),) = preview_pages(picture, found, 4.0, classes)
        strip = Strip(found, class_colours(classes), 4.0, 320)
        pixel = page[32 + strip.top_of("run"), strip.column(2.0)]
        np.testing.assert_allclose(pixel, rgb(class_colours(classes)["run"]), atol=1)


def test_labels_are_shown_while_their_segments_last():
    chips = Chips(Segments([0, 1, 0], [2, 3, 2], ["a", "b", "a"], [0.4, 0.8, 0.6]), class_colours("ab"))
    assert [chips.now(t) for t in (0.0, 1.0, 2.0, 3.0)] == [{"a": 0.6}, {"b": 0.8, "a": 0.6}, {"b": 0.8}, {}]
    page = np.zeros((100, 200, 3), np.uint8)
    chips.draw(page, 3.0)
    assert not page.any()
    chips.draw(page, 1.5)
    found = {name: (np.abs(page - rgb(colour)) < 1).all(-1).any(1) for name, colour in class_colours("ab").items()}
    assert np.flatnonzero(found["b"]).max() < np.flatnonzero(found["a"]).min()  # below each other, highest score first
    small = np.zeros((6, 10, 3), np.uint8)
    chips.draw(small, 1.5)  # cut off, no error
    text = text_image("jump $5", 12, INK, PAPER)
    assert text.std() > 20 and text_image("jump jump", 12, INK, PAPER).shape[1] > text.shape[1] > 20


def test_what_cannot_be_written(tmp_path, monkeypatch):
    for size, shown in (((1080, 1920), (480, 854)), ((240, 321), (240, 320)), ((1, 1), (2, 2))):
        assert preview_size(*size) == shown
    picture = [(0.0, np.zeros((32, 32, 3), np.uint8))]
    with pytest.raises(InputError, match=r"p.gif: a preview is written as .mp4"):
        write_preview(picture, FOUND, tmp_path / "p.gif", duration=1.0, console=QUIET)
    with pytest.raises(InputError, match=r"p.mp4: the video has no frame"):
        write_preview([], FOUND, tmp_path / "p.mp4", duration=1.0, console=QUIET)

    def breaking():
        yield from picture
        raise InputError("cut off")

    with pytest.raises(InputError, match="cut off"):
        write_preview(breaking(), FOUND, tmp_path / "p.mp4", duration=1.0, console=QUIET)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(av, "codecs_available", set())  # an FFmpeg without x264
    write_preview(picture, Segments.empty(), tmp_path / "p.mkv", duration=1.0, console=QUIET)
    with av.open(str(tmp_path / "p.mkv")) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
