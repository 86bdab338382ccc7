"""What happens in the clips of ZoomBench-video: which shape does what, from which frame to which, and what distracts.

A clip is drawn as a plan of arrays with one row per frame; `zoombench_render` turns it into pictures. An action that
begins at frame s and ends at frame e leaves frame s as it was at rest, and the last change is the one to frame e: the
annotation says s / fps and e / fps, and the picture of frame k is that of second k / fps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

Floats = NDArray[np.float64]
ACTIONS = ("move", "spin", "bounce", "pulse", "blink_colour", "shake")
SHAPES = ("disc", "square", "triangle", "bar")
EVENTS = ("cut", "fade", "flash")
SHORTEST, LONGEST = 0.6, 5.0  # seconds of an action
FADE_SECONDS = 0.24  # from full light to the darkest, and back
FADE_DEPTH = 0.85
FLASH = (0.7, 0.4)  # how white the frame of a flash and the one after it are
CLEARANCE = 0.5  # seconds between a distractor and any boundary, so that it cannot be taken for one


@dataclass(frozen=True)
class VideoBench:
    """The knobs. size: pixels per side; jitter: of the camera, in shares of the picture; drift: of backgrounds and of
    shapes that do not rest, in pictures per second; at_boundaries: share of the boundaries that come with a cut, fade
    or flash; distractors: cuts, fades and flashes per minute where nothing begins or ends."""

    clips: int = 8
    seconds: float = 20.0
    size: int = 96
    fps: float = 25.0
    seed: int = 0
    jitter: float = 0.004
    drift: float = 0.025
    at_boundaries: float = 0.35
    distractors: float = 9.0
    back_to_back: float = 0.2

    def __post_init__(self) -> None:
        for name, low, high in (("clips", 2, 10_000), ("seconds", 6, 3600), ("size", 32, 1024), ("fps", 10, 120)):
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name}: must be between {low} and {high}, got {getattr(self, name)!r}")
        if self.size % 2:
            raise InputError(f"size: must be even, because videos store colour at half resolution, got {self.size}")

    @property
    def rate(self) -> Fraction:
        """Frames per second as the video file says it."""
        return Fraction(self.fps).limit_denominator(1001)

    @property
    def frames(self) -> int:
        return round(self.seconds * self.rate)


@dataclass(frozen=True)
class Instance:
    """An action of shape number `actor`, in frames."""

    start: int
    end: int
    action: str
    actor: int


@dataclass(frozen=True)
class Event:
    """A cut, fade or flash whose middle is frame `at`."""

    at: int
    kind: str
    at_boundary: bool


@dataclass(frozen=True, eq=False)
class ShapeTrack:
    """One shape in every frame: centre (T, 2), x then y, and radius (T,) in shares of the picture; angle (T,);
    colour (T, 3) in 0..255."""

    kind: str
    centre: Floats
    radius: Floats
    angle: Floats
    colour: Floats


@dataclass(frozen=True, eq=False)
class Clip:
    """A plan. camera (T, 2): shift in shares of the picture; scene (T,): number of the background; texture_seed: what
    the backgrounds are drawn from; light (T,): factor; white (T,): share of white."""

    bench: VideoBench
    instances: tuple[Instance, ...]
    events: tuple[Event, ...]
    shapes: tuple[ShapeTrack, ...]
    camera: Floats
    scene: NDArray[np.intp]
    texture_seed: tuple[int, ...]
    light: Floats
    white: Floats

    @property
    def segments(self) -> Segments:
        rate = float(self.bench.rate)
        return Segments(
            [i.start / rate for i in self.instances],
            [i.end / rate for i in self.instances],
            [i.action for i in self.instances],
        )


def draw_clip(bench: VideoBench, index: int) -> Clip:
    """Clip number `index`. It depends on the seed and its own number alone: more clips leave the first ones as is."""
    random = np.random.default_rng([bench.seed, 0x71DE0, index])
    shapes = int(random.integers(1, 3))
    instances = _draw_instances(bench, shapes, random)
    events = _draw_events(bench, instances, random)
    tracks = tuple(_draw_track(bench, actor, shapes, instances, random) for actor in range(shapes))
    camera = _draw_jitter(bench, random)
    light, white = _draw_light(bench, events)
    changes = [event.at for event in events if event.kind != "flash"]  # the picture after a fade is another one
    scene = np.searchsorted(np.array(changes, np.intp), np.arange(bench.frames), side="right")
    return Clip(bench, instances, events, tracks, camera, scene, (bench.seed, 0x7EC5, index), light, white)


def _draw_instances(bench: VideoBench, shapes: int, random: np.random.Generator) -> tuple[Instance, ...]:
    """Gap, action, gap, ...; some gaps are zero. Actions are dealt from a shuffled deck, so that all are about as
    frequent."""
    rate, instances, deck = float(bench.rate), list[Instance](), list[str]()
    cursor = round(min(0.4 + random.exponential(0.6), 3.0) * rate)  # early enough for one action in the shortest clip
    while True:
        if len(deck) < 2:
            deck = [*deck, *random.permutation(ACTIONS).tolist()]
        touching = bool(instances) and random.random() < bench.back_to_back
        start = instances[-1].end if touching else cursor
        # The same action twice without a gap would leave no trace of the boundary.
        action = deck.pop(1 if touching and deck[0] == instances[-1].action else 0)
        length = round(np.exp(random.uniform(np.log(SHORTEST), np.log(LONGEST))) * rate)
        if start + length > bench.frames - round(0.2 * rate):
            length = round(1.0 * rate)  # a last short one rather than seconds of nothing
            if start + length > bench.frames - round(0.2 * rate):
                return tuple(instances)
        instances.append(Instance(start, start + length, action, int(random.integers(shapes))))
        cursor = start + length + round((0.4 + random.exponential(1.0)) * rate)


def _draw_events(bench: VideoBench, instances: tuple[Instance, ...], random: np.random.Generator) -> tuple[Event, ...]:
    boundaries = sorted({frame for i in instances for frame in (i.start, i.end)})
    events = [Event(at, str(random.choice(EVENTS)), True) for at in boundaries if random.random() < bench.at_boundaries]
    for _ in range(random.poisson(bench.distractors * bench.seconds / 60)):
        at, kind = int(random.integers(bench.frames)), str(random.choice(EVENTS))
        if np.abs(np.array(boundaries) - at).min() >= CLEARANCE * float(bench.rate):
            events.append(Event(at, kind, False))
    return tuple(sorted(events, key=lambda event: event.at))


def _draw_track(
    bench: VideoBench, actor: int, shapes: int, instances: tuple[Instance, ...], random: np.random.Generator
) -> ShapeTrack:
    frames, rate = bench.frames, float(bench.rate)
    size = random.uniform(0.13, 0.17)
    # Two shapes have a half of the picture each, above one another: none hides more than the rim of the other.
    home = np.array([0.5, 0.5 if shapes == 1 else 0.26 + 0.48 * actor])
    room = np.array([0.08, 0.03])
    low, high = home - room, home + room
    slow = _direction(random, np.pi) * bench.drift * (random.random() < 0.5)
    step = np.tile(slow / rate, (frames, 1))  # (T, 2): from the frame before to this one
    turn = np.zeros(frames)
    offset, radius, mix = np.zeros((frames, 2)), np.full(frames, size), np.zeros(frames)
    for instance in (i for i in instances if i.actor == actor):
        inside = np.arange(instance.start + 1, instance.end + 1)
        seconds = (inside - instance.start) / rate
        length = (instance.end - instance.start) / rate
        vigour = random.uniform(0.85, 1.2)
        sign = random.choice([-1.0, 1.0])
        if instance.action == "move":
            # Out and back along a line, to one side and then to the other.
            side, phase = np.divmod(_cycles(seconds, length, 1.3 * vigour), 1)
            far = sign * (-1) ** side * 0.28 * (1 - np.abs(1 - 2 * phase))
            offset[inside] = far[:, None] * _direction(random, 0.15)
        elif instance.action == "spin":
            turn[inside] = sign * 2 * np.pi * 1.1 * vigour / rate
        elif instance.action == "bounce":
            offset[inside, 1] = -0.13 * np.abs(np.sin(np.pi * _cycles(seconds, length, 2.0 * vigour)))
        elif instance.action == "pulse":
            radius[inside] = size * (1 + 0.45 * sign * np.sin(2 * np.pi * _cycles(seconds, length, 1.4 * vigour)))
        elif instance.action == "blink_colour":
            phase = _cycles(seconds, length, 2.0 * vigour) % 1
            mix[inside] = np.minimum(1, 2.5 * np.minimum(phase, 1 - phase))
        else:
            offset[inside, 0] = sign * 0.045 * np.sin(2 * np.pi * _cycles(seconds, length, 5.0 * vigour))
    centre = _reflected(random.uniform(low, high) + np.cumsum(step, axis=0), low, high) + offset
    colours = _draw_colours(random)
    colour = colours[0] + mix[:, None] * (colours[1] - colours[0])
    kind = str(random.choice(SHAPES))
    return ShapeTrack(kind, centre, radius, random.uniform(0, 2 * np.pi) + np.cumsum(turn), colour)


def _cycles(seconds: Floats, length: float, frequency: float) -> Floats:
    """Cycles so far, of about `frequency` per second, a whole number at the end: the shape comes back to rest."""
    return seconds * max(round(length * frequency), 1) / length


def _direction(random: np.random.Generator, spread: float) -> Floats:
    """A unit vector within `spread` radians of the horizontal."""
    angle = random.uniform(-spread, spread)
    return np.array([np.cos(angle), np.sin(angle)])


def _reflected(path: Floats, low: Floats, high: Floats) -> Floats:
    """A path (T, 2) thrown back at the walls `low` and `high`."""
    reach = high - low
    return low + reach - np.abs((path - low) % (2 * reach) - reach)


def _draw_colours(random: np.random.Generator) -> Floats:
    """(2, 3): a shape's colour and the darker one it blinks to, from the other side of the colour wheel."""
    hue = random.random() + np.array([0.0, 0.5])
    wheel = 0.5 + 0.5 * np.cos(2 * np.pi * (hue[:, None] - np.arange(3) / 3))
    return (60 + 195 * wheel) * np.array([[1.0], [0.7]])


def _draw_jitter(bench: VideoBench, random: np.random.Generator) -> Floats:
    """(T, 2): a hand that trembles, AR(1), of standard deviation `jitter`."""
    steps = random.normal(size=(bench.frames, 2))
    camera = np.zeros_like(steps)
    for k in range(1, len(steps)):
        camera[k] = 0.85 * camera[k - 1] + np.sqrt(1 - 0.85**2) * steps[k]
    return bench.jitter * camera


def _draw_light(bench: VideoBench, events: tuple[Event, ...]) -> tuple[Floats, Floats]:
    light, white = np.ones(bench.frames), np.zeros(bench.frames)
    frame, half = np.arange(bench.frames), max(FADE_SECONDS * float(bench.rate), 1.0)
    for event in events:
        if event.kind == "fade":
            light = np.minimum(light, 1 - FADE_DEPTH * np.clip(1 - np.abs(frame - event.at) / half, 0, 1))
        elif event.kind == "flash":
            shown = white[event.at : event.at + len(FLASH)]
            shown[:] = np.maximum(shown, FLASH[: len(shown)])
    return light, white
