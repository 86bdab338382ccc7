"""The pictures of ZoomBench-video: drifting textures, and shapes drawn by their distance functions. NumPy only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from temporalzoom.datasets.zoombench_scenes import Clip, ShapeTrack

Frames = NDArray[np.uint8]
Plane = NDArray[np.float32]
FAR, NEAR = (3, 6, 12), (24, 48)  # cells per side of the noise of the two layers of a background
BLOCK = 8  # frames rendered at a time: their arrays stay in the processor's cache


def render(clip: Clip, first: int = 0, last: int | None = None) -> Frames:
    """Frames first..last - 1 (by default all) of a clip: RGB (n, size, size, 3). Frame k is that of second k / fps."""
    last = clip.bench.frames if last is None else last
    blocks = list(render_blocks(clip, first, last))
    return np.concatenate(blocks) if blocks else np.empty((0, clip.bench.size, clip.bench.size, 3), np.uint8)


def render_blocks(clip: Clip, first: int, last: int) -> Iterator[Frames]:
    """The same in blocks of up to BLOCK frames, for clips that are better not held in memory as a whole."""
    for start in range(first, last, BLOCK):
        rows = np.arange(start, min(start + BLOCK, last))
        picture = np.empty((len(rows), 3, clip.bench.size, clip.bench.size), np.float32)
        for slot, row in enumerate(rows):
            _draw_background(clip, int(row), picture[slot])
        for shape in clip.shapes:
            _draw_shape(clip, shape, rows, picture)
        light, white = (part[rows].astype(np.float32)[:, None, None, None] for part in (clip.light, clip.white))
        if (light < 1).any() or (white > 0).any():
            picture *= light * (1 - white)
            picture += 255 * white
        picture += np.float32(0.5)  # rounds, where the conversion would cut off
        yield np.ascontiguousarray(np.clip(picture, 0, 255, out=picture).astype(np.uint8).transpose(0, 2, 3, 1))


def _draw_background(clip: Clip, row: int, picture: Plane) -> None:
    """Two layers of texture into picture (3, S, S); the near one drifts twice as fast, as it would for a camera."""
    bench, scene = clip.bench, int(clip.scene[row])
    textures, heading = _scene_look(clip.texture_seed, scene, bench.size)
    seconds = row / float(bench.rate)
    for layer, (texture, speed) in enumerate(zip(textures, (1.0, 2.0), strict=True)):
        shift = (heading * bench.drift * speed * seconds + clip.camera[row]) * bench.size
        (column, right), (line, down) = (divmod(float(s) % (2 * bench.size), 1) for s in shift)
        y, x, size = int(line), int(column), bench.size
        window = texture[:, y : y + size + 1, x : x + size + 1]
        lines = window[:, :-1] + np.float32(down) * (window[:, 1:] - window[:, :-1]) if down else window[:, :-1]
        moved = (
            lines[:, :, :-1] + np.float32(right) * (lines[:, :, 1:] - lines[:, :, :-1]) if right else lines[..., :-1]
        )
        if layer:
            picture += moved
        else:
            picture[:] = moved


def _draw_shape(clip: Clip, shape: ShapeTrack, rows: NDArray[np.intp], picture: Plane) -> None:
    """One shape into pictures (n, 3, S, S), its edge one pixel soft. One half of it is darker: turning shows."""
    size = clip.bench.size
    centre = shape.centre[rows]
    mirrored = clip.scene[rows] % 2 == 1  # another scene is seen from the other side
    centre = np.where(mirrored[:, None] & np.array([True, False]), 1 - centre, centre)
    centre = (centre - clip.camera[rows]) * size
    # Only the part of the pictures that the shape can reach in any of these frames is computed.
    reach = 1.5 * shape.radius[rows].max() * size + 2
    left, top = np.maximum(np.floor(centre.min(0) - reach), 0).astype(int)
    right, bottom = np.minimum(np.ceil(centre.max(0) + reach), size).astype(int)
    if right <= left or bottom <= top:
        return
    x, y, angle, radius = (
        values.astype(np.float32)[:, None, None]
        for values in (centre[:, 0], centre[:, 1], shape.angle[rows] % (2 * np.pi), shape.radius[rows] * size)
    )
    across = np.arange(left, right, dtype=np.float32) + np.float32(0.5) - x
    down = (np.arange(top, bottom, dtype=np.float32) + np.float32(0.5))[:, None] - y
    u = across * np.cos(angle) + down * np.sin(angle)
    v = down * np.cos(angle) - across * np.sin(angle)
    cover = np.clip(np.float32(0.5) - _distance(shape.kind, u, v, radius), 0, 1)
    tone = np.float32(1) - np.float32(0.65) * np.clip(np.float32(0.5) - u, 0, 1)
    colour = shape.colour[rows].astype(np.float32)[:, :, None, None]
    part = picture[:, :, top:bottom, left:right]
    part += cover[:, None] * (tone[:, None] * colour - part)


def _distance(kind: str, u: Plane, v: Plane, radius: Plane) -> Plane:
    """Pixels (n, H, W) from the edge of a shape, negative inside; u, v: coordinates along and across the shape."""
    if kind == "disc":
        return np.asarray(np.sqrt(u * u + v * v) - radius)
    if kind == "square":
        return np.asarray(np.maximum(np.abs(u), np.abs(v)) - np.float32(0.85) * radius)
    if kind == "bar":
        return np.asarray(np.maximum(np.abs(u) - np.float32(1.3) * radius, np.abs(v) - np.float32(0.45) * radius))
    slanted = np.float32(np.sqrt(0.75)) * np.abs(v) + np.float32(0.5) * u
    return np.asarray(np.maximum(slanted, -u) - np.float32(0.65) * radius)


@lru_cache(maxsize=4)
def _scene_look(seed: tuple[int, ...], scene: int, size: int) -> tuple[tuple[Plane, Plane], NDArray[np.float64]]:
    """The far and the near texture of a scene, (3, 3 * size + 1, 3 * size + 1) each, and where it drifts to (2,)."""
    random = np.random.default_rng([*seed, scene])
    base = random.uniform(80, 130, size=3)
    far = base + sum(_noise(random, cells, size) * 24 / np.sqrt(level + 1) for level, cells in enumerate(FAR))
    near = sum((_noise(random, cells, size) * 10 for cells in NEAR), start=np.zeros((1, 1, 3)))
    angle = random.uniform(0, 2 * np.pi)
    textures = tuple(_wrapped(np.clip(t, *limits), size) for t, limits in ((far, (20, 210)), (near, (-40, 40))))
    return (textures[0], textures[1]), np.array([np.cos(angle), np.sin(angle)])


def _noise(random: np.random.Generator, cells: int, size: int) -> NDArray[np.float64]:
    """Smooth noise in -1..1, (2 * size, 2 * size, 3), that goes on seamlessly at its edges."""
    values = random.uniform(-1, 1, size=(cells, cells, 3))
    place = np.arange(2 * size) * cells / (2 * size)
    cell, share = place.astype(int), place % 1
    share = share * share * (3 - 2 * share)
    lines = values[cell] + share[:, None, None] * (values[(cell + 1) % cells] - values[cell])
    return np.asarray(lines[:, cell] + share[:, None] * (lines[:, (cell + 1) % cells] - lines[:, cell]))


def _wrapped(texture: NDArray[np.float64], size: int) -> Plane:
    """(2 S, 2 S, 3) -> (3, 3 S + 1, 3 S + 1): every window of S + 1 that starts in the texture is one slice."""
    wide = np.pad(texture, ((0, size + 1), (0, size + 1), (0, 0)), mode="wrap")
    return np.ascontiguousarray(wide.transpose(2, 0, 1), dtype=np.float32)
