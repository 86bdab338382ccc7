"""Wrong files of text and of tables: annotations, signals, spreadsheets; the makers of bytes that others use."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import specimens
from mutations import VALUES, mutated_bytes, mutated_json, mutated_text

Draw = random.Random


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def text_file(texts: Callable[[], Sequence[tuple[str, bytes]]]) -> Callable[[Draw, Path], Path]:
    """Files of text: lines, cells and words go wrong, at times bytes."""

    def make(draw: Draw, folder: Path) -> Path:
        name, content = draw.choice(texts())
        if draw.random() < 0.8:
            content = mutated_text(content.decode(), draw).encode("utf-8", "surrogatepass")
        if draw.random() < 0.3:
            content = mutated_bytes(content, draw, draw.choice(texts())[1])
        return written(folder, name, content)

    return make


def byte_file(files: Callable[[], Sequence[tuple[str, bytes]]]) -> Callable[[Draw, Path], Path]:
    def make(draw: Draw, folder: Path) -> Path:
        name, content = draw.choice(files())
        return written(folder, name, mutated_bytes(content, draw, draw.choice(files())[1]))

    return make


def json_file(name: str, trees: Sequence[Any]) -> Callable[[Draw, Path], Path]:
    return lambda draw, folder: written(folder, name, mutated_json(draw.choice(trees), draw))


def of_suffix(*suffixes: str) -> Callable[[], list[tuple[str, bytes]]]:
    return lambda: [(f"walk1{s}", specimens.annotation_files()[s]) for s in suffixes]


def arrays(*suffixes: str) -> Callable[[], list[tuple[str, bytes]]]:
    return lambda: [(name, content) for name, content in specimens.array_files().items() if name.endswith(suffixes)]


def tables() -> list[tuple[str, bytes]]:
    own = of_suffix(".csv", ".tsv", ".boris.tsv", ".boris.csv", ".deepethogram.csv", ".simba.csv")()
    return own + [("walk1.csv", text.encode()) for text in specimens.TABLES]


def signal_tables() -> list[tuple[str, bytes]]:
    return [("x.csv", text.encode()) for text in specimens.SIGNALS] + arrays("dlc.csv")()


def spreadsheet_file(draw: Draw, folder: Path) -> Path:
    import openpyxl

    if draw.random() < 0.4:
        return byte_file(of_suffix(".xlsx"))(draw, folder)
    book = openpyxl.Workbook()
    sheet = book.active
    cells = [*VALUES[:9], 0.5, 1e308, "run", "walk1", "0:01", "=1+1", "2024-01-01", -3]
    header = ["video", "start", "end", "label", "subject"]
    sheet.append(draw.sample((*header, "duration", "time", "Behavior", None), 5) if draw.random() < 0.3 else header)
    for number in range(draw.randrange(4)):
        row = ["walk1", number, number + 0.5, "run", "p1"]
        for _ in range(draw.randrange(3)):
            row[draw.randrange(5)] = draw.choice(cells)
        sheet.append(row)
    if draw.random() < 0.2:
        book.create_sheet("second").append(["a"])
    book.save(folder / "walk1.xlsx")
    return folder / "walk1.xlsx"
