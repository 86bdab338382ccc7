"""A copy of a video with its segments burned in: what happens now on the picture, everything on a time line below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.progress import track
from temporalzoom.segments import Segments
from temporalzoom.terminal import Screen
from temporalzoom.viewer.style import INK, MUTED, class_colours, text_colour
from temporalzoom.viewer.timeline import assign_lanes

Image = NDArray[np.uint8]  # RGB (H, W, 3)
FORMATS = {".mp4": "mp4", ".mkv": "matroska", ".mov": "mov"}
LARGEST_HEIGHT = 480
SMALLEST_WIDTH = 320  # narrower pictures get margins, so that the time line can be read
PAPER, MARGIN = "#f5f6f8", "#000000"
FONT_SIZE, CHIP_SIZE = 11, 14  # pixels; of the names of rows, of the labels on the picture
ROW, BAR, PAD = 18, 12, 4  # heights of a lane and of its bars, and the room around all of them
MOST_ROWS_HEIGHT = 180  # more lanes make lower ones, which then have no names
MOST_LANES = 4  # of one class; the highest scores have them
TICKS = 60_000  # per second: the frame rates in use, 30000/1001 too, are whole numbers of them


def preview_size(height: int, width: int) -> tuple[int, int]:
    """(height, width) of the picture in the preview: at most 480 high, both even as the encoder wants them."""
    scale = min(1.0, LARGEST_HEIGHT / height)
    return max(round(height * scale / 2), 1) * 2, max(round(width * scale / 2), 1) * 2


def check_preview(out: str | Path) -> None:
    """Raises InputError where a preview could not be written under this name."""
    if Path(out).suffix.lower() not in FORMATS:
        raise InputError(f"{out}: a preview is written as {', '.join(FORMATS)}, not as {Path(out).suffix!r}")
    _pyav(out)


def write_preview(
    frames: Iterable[tuple[float, Image]],
    segments: Segments,
    out: str | Path,
    *,
    duration: float,
    classes: Iterable[str] = (),
    fps: float = 25.0,
    console: Console | None = None,
) -> None:
    """Every frame, at its own time, with labels and scores on it and a time line of `duration` seconds below it.

    frames: `(seconds, image)` in order of time, images of one size (H, W, 3), see `preview_size`. classes: all that the
    model knows; they decide the colours. fps: about how many frames there are per second, for the encoder and the
    progress bar. The file is whole, or not there.
    """
    check_preview(out)
    out, console = Path(out), console or Screen(stderr=True)
    watched = track(frames, "writing the preview", console, total=max(round(duration * fps), 1))
    with replacing(out, "wb") as file:
        _encode(file, out, preview_pages(watched, segments, duration, classes), fps)


def preview_pages(
    frames: Iterable[tuple[float, Image]], segments: Segments, duration: float, classes: Iterable[str] = ()
) -> Iterator[tuple[float, Image]]:
    """`(seconds, page)` of every frame; the page (H', W', 3) is one array that the next frame overwrites."""
    palette = class_colours(classes, segments.labels.tolist())
    strip: Strip | None = None
    chips = Chips(segments, palette)
    for seconds, image in frames:
        height, width = image.shape[:2]
        if strip is None:
            strip = Strip(segments, palette, duration, max(width, SMALLEST_WIDTH))
            page = np.empty((height + strip.height, strip.width, 3), np.uint8)
            page[:height] = _rgb(MARGIN)
            left = (strip.width - width) // 2
        page[:height, left : left + width] = image
        chips.draw(page[:height], seconds)
        strip.draw(page[height:], seconds)
        yield seconds, page
        if left:  # the labels may reach over the margins
            page[:height] = _rgb(MARGIN)


class Strip:
    """The time line: a row per label, sorted, and where the playhead is.

    Segments of one label that overlap have a lane each, so that none hides another; those beyond `MOST_LANES` are
    counted behind the name. Drawn once; a frame copies it and adds the playhead.
    """

    def __init__(self, segments: Segments, palette: Mapping[str, str], duration: float, width: int) -> None:
        rows = {label: segments.filter(labels=label) for label in sorted(set(segments.labels.tolist()))}
        lanes = {label: assign_lanes(row) for label, row in rows.items()}
        counts = {label: min(int(lane.max()) + 1, MOST_LANES) for label, lane in lanes.items()}
        total = max(sum(counts.values()), 1)
        self.lane = ROW if total * ROW <= MOST_ROWS_HEIGHT else max(MOST_ROWS_HEIGHT // total, 2)
        self.bar = min(BAR, max(self.lane - 1, 1))
        self.duration, self.width = max(duration, 1e-3), width
        self.height = 2 * -(-(total * self.lane + 2 * PAD) // 2)
        self.image: Image = np.empty((self.height, width, 3), np.uint8)
        self.image[:] = _rgb(PAPER)
        names: dict[str, Image] = {}
        if self.lane == ROW:
            for label, lane in lanes.items():
                hidden = np.count_nonzero(lane >= MOST_LANES)
                text = f"{label} +{hidden}" if hidden else label
                names[label] = text_image(text, FONT_SIZE, INK, PAPER)[:, : width // 4]
        self.left = PAD + max((name.shape[1] for name in names.values()), default=0) + (PAD if names else 0)
        self.right = width - PAD
        self.first_lane: dict[str, int] = {}
        above = 0
        for label, row in rows.items():
            self.first_lane[label] = above
            top = self.top_of(label)
            if label in names:
                _paste(self.image, names[label], top + (self.bar - names[label].shape[0]) // 2, PAD)
            for index in range(counts[label]):
                line = self.top_of(label, index) + self.bar // 2
                self.image[line : line + 1, self.left : self.right] = _mixed(MUTED, PAPER, 0.35)
            for (start, end, _, _), index in zip(row, lanes[label].tolist(), strict=True):
                if index < MOST_LANES:
                    first, top = self.column(start), self.top_of(label, index)
                    self.image[top : top + self.bar, first : max(self.column(end), first + 1)] = _rgb(palette[label])
            above += counts[label]

    def top_of(self, label: str, lane: int = 0) -> int:
        """The first line of the bars in a lane of a label."""
        return PAD + (self.first_lane[label] + lane) * self.lane + (self.lane - self.bar) // 2

    def column(self, seconds: float) -> int:
        share = min(max(seconds / self.duration, 0.0), 1.0)
        return self.left + round(share * (self.right - 1 - self.left))

    def draw(self, target: Image, seconds: float) -> None:
        """The strip at a time, into `target` (height, width, 3)."""
        target[:] = self.image
        at = self.column(seconds)
        target[1:-1, max(at - 1, 0) : at + 1] = _rgb(INK)


class Chips:
    """What happens now: label and score of each segment on its colour, in the corner of the picture.

    Of one label only the highest score. The text of a segment is drawn when it first appears, not for every frame.
    """

    def __init__(self, segments: Segments, palette: Mapping[str, str]) -> None:
        self.segments = segments.sort("score")
        self.palette = palette
        self._images: dict[str, Image] = {}

    def now(self, seconds: float) -> dict[str, float]:
        """Highest score of each label at a time, highest first."""
        active = self.segments[(self.segments.starts <= seconds) & (seconds < self.segments.ends)]
        found: dict[str, float] = {}
        for _, _, label, score in active:
            found.setdefault(label, score)
        return found

    def draw(self, target: Image, seconds: float) -> None:
        """Into the upper left corner of `target` (H, W, 3), as many below each other as there is room for."""
        top = PAD
        for label, score in self.now(seconds).items():
            text = f"{label} {score:.2f}"
            if text not in self._images:
                colour = self.palette[label]
                self._images[text] = text_image(text, CHIP_SIZE, text_colour(colour), colour, around=3)
            chip = self._images[text]
            if top > PAD and top + chip.shape[0] > target.shape[0]:
                break
            _paste(target, chip, top, PAD)
            top += chip.shape[0] + 2


def text_image(text: str, size: int, colour: str, background: str, around: int = 0) -> Image:
    """One line of text (H, W, 3) in the font that ships with matplotlib, so that it looks the same everywhere."""
    from matplotlib import get_data_path
    from PIL import Image as Picture
    from PIL import ImageDraw, ImageFont

    font = ImageFont.truetype(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), size)
    line = " ".join(text.split()) or " "
    ascent, descent = font.getmetrics()
    width = max(round(font.getlength(line)), 1)
    picture = Picture.new("RGB", (width + 2 * around, ascent + descent + 2 * around), background)
    ImageDraw.Draw(picture).text((around, around), line, fill=colour, font=font)
    return np.asarray(picture, np.uint8)


def _encode(file: IO[bytes], out: Path, pages: Iterator[tuple[float, Image]], fps: float) -> None:
    av = _pyav(out)
    try:
        with av.open(file, "w", format=FORMATS[out.suffix.lower()]) as container:
            stream, previous = None, -1
            for seconds, page in pages:
                if stream is None:
                    stream = _video_stream(av, container, page, fps)
                frame = av.VideoFrame.from_ndarray(page, format="rgb24")
                # Two frames of one tick would be refused.
                previous = max(round(seconds * TICKS), previous + 1)
                frame.pts, frame.time_base = previous, Fraction(1, TICKS)
                container.mux(stream.encode(frame))
            if stream is None:
                raise InputError(f"{out}: the video has no frame to show")
            container.mux(stream.encode())
    except av.error.FFmpegError as error:
        raise InputError(f"{out}: the preview could not be encoded: {error}") from error


def _video_stream(av: ModuleType, container: Any, page: Image, fps: float) -> Any:
    """H.264, which everything plays; MPEG-4 where FFmpeg was built without it."""
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
    stream.height, stream.width = page.shape[:2]
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, TICKS)
    if codec == "libx264":
        stream.options = {"crf": "20", "preset": "veryfast"}
    else:
        stream.bit_rate = 4_000_000
    return stream


def _pyav(out: str | Path) -> ModuleType:
    try:
        import av
        import av.error
    except ImportError as error:
        raise InputError(f'{out}: writing a preview needs PyAV: pip install "temporalzoom[video]"') from error
    return av


def _paste(target: Image, image: Image, top: int, left: int) -> None:
    """`image` into `target`; what does not fit is cut off."""
    room = target[max(top, 0) : max(top, 0) + image.shape[0], left : left + image.shape[1]]
    room[:] = image[: room.shape[0], : room.shape[1]]


def _rgb(colour: str) -> Image:
    return np.round(255 * np.array(to_rgb(colour))).astype(np.uint8)


def _mixed(colour: str, background: str, share: float) -> Image:
    mixed = share * np.array(to_rgb(colour)) + (1 - share) * np.array(to_rgb(background))
    return np.round(255 * mixed).astype(np.uint8)
