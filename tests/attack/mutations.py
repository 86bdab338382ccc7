"""Valid input made wrong, by its structure: bytes, lines and cells of text, trees of JSON. Everything is drawn from a
`random.Random`, so that a seed gives the same inputs again."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

NUMBERS = (
    *("0", "-1", "1", "-0.0", "0.1", "1e999", "-1e999", "nan", "NaN", "inf", "-Infinity", "1e308", "-1e308", "5e-324"),
    *("9" * 19, "-" + "9" * 19, "9" * 400, "1" * 5000, "1,5", "1.2.3", "0x10", "1_000", "٣", "²", "1e", "--1", "+1"),
    *("2147483648", "4294967296", "9223372036854775808", "0.1e-400", "00012", "1:02:03", "99:99:99", "12:00", "1e15"),
)
WORDS = (
    *(
        "",
        " ",
        "\t",
        "\x00",
        "\x1b[2J",
        "\u0085",
        "\u2028",
        "\ufeff",
        "\u202e",
        "é",
        "e\u0301",
        "漢字",
        "😀",
        "a\u200bb",
    ),
    *("=1+1", "-x", "@x", "'x", '"', "'", "`", "\\", "/", "..", "../x", "/etc/passwd", "C:\\x", "~", "a/b", "%s", "{}"),
    *("{0.__class__}", "$(x)", "[red]x[/]", "<script>", "&lt;", "&#0;", "x" * 300, "null", "None", "true", "NaN", "#"),
    *(
        "a,b",
        "a;b",
        "a\nb",
        "a\r\nb",
        "a\rb",
        "Ambiguous",
        "background",
        "features",
        "time",
        "frame",
        "\ud7ff",
        "\U0010ffff",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        2**64,
        -(2**63),
        10**400,
        0.5,
        -0.0,
        1e308,
        float("nan"),
        float("inf"),
    ),
    *(float("-inf"), "", "x", "1", "\x1b[2J", "\ud800", "x" * 300, "../x", [], {}, [[]], [{}], {"": None}, {"a": [1]}),
    *([0, 1], [1, 0], [None, None], ["a", "b"], [float("nan"), 1], [1, 2, 3], [True, False], list(range(50))),
)


def mutated_bytes(content: bytes, draw: random.Random, other: bytes = b"") -> bytes:
    """One to three wrongs of the bytes."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        size = len(data)
        place = draw.randrange(size + 1)
        length = min(draw.choice((1, 1, 2, 4, 8, 64, 1024)), size - place)
        kind = draw.randrange(9)
        if kind == 0:
            del data[place:]
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = draw.randbytes(length)
        elif kind == 3 and length:
            data[place : place + length] = draw.randbytes(length)
        elif kind == 4 and length:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 5:
            data[place:place] = data[place : place + length] * draw.choice((1, 2, 50))
        elif kind == 6 and length:
            data[place : place + length] = draw.choice((b"\x00", b"\xff", b"\x7f", b"\x80")) * length
        elif kind == 7:
            data[place:place] = draw.choice(WORDS).encode("utf-8", "replace")
        elif other:
            data[place:] = other[draw.randrange(len(other)) :]
    return bytes(data)


def mutated_text(content: str, draw: random.Random) -> str:
    """One to three wrongs of lines, numbers and words."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind = draw.randrange(8)
        lines = content.split("\n")
        if kind == 0 and len(lines) > 1:
            del lines[draw.randrange(len(lines))]
            content = "\n".join(lines)
        elif kind == 1:
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
            content = "\n".join(lines)
        elif kind == 2:
            draw.shuffle(lines)
            content = "\n".join(lines)
        elif kind in (3, 4):
            content = _replaced(content, r"-?\d[\d.]*", draw.choice(NUMBERS), draw)
        elif kind == 5:
            content = _replaced(content, r"[^\W\d]+", draw.choice(WORDS), draw)
        elif kind == 6:
            content = _replaced(content, r"[,;\t:\"'<>{}\[\]=|.-]", draw.choice((*",;\t\n\"'<>{}[]= ", "", ",,")), draw)
        else:
            place = draw.randrange(len(content) + 1)
            content = content[:place] + draw.choice((*WORDS, *NUMBERS)) + content[place:]
    return content


def _replaced(content: str, pattern: str, text: str, draw: random.Random) -> str:
    found = list(re.finditer(pattern, content))
    if not found:
        return content + text
    match = draw.choice(found)
    return content[: match.start()] + text + content[match.end() :]


def mutated_tree(tree: Any, draw: random.Random) -> Any:
    """One to three wrongs of a tree of dictionaries and lists."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        nodes = [node for node in _containers(tree) if node]
        if not nodes:
            return copy.deepcopy(draw.choice(VALUES))
        node = draw.choice(nodes)
        key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        kind = draw.randrange(8)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, dict):
            node[draw.choice(WORDS)] = node.pop(key)
        elif kind == 2 and isinstance(node, dict):
            node[draw.choice((*WORDS, "label", "segment", "fps", "duration"))] = copy.deepcopy(draw.choice(VALUES))
        elif kind == 3 and isinstance(node, list):
            node.insert(key, copy.deepcopy(draw.choice([*VALUES, node[key]])))
        elif kind == 4:
            node[key] = [node[key]] if draw.random() < 0.5 else {"x": node[key]}
        elif kind == 5 and isinstance(node[key], str):
            node[key] = draw.choice(WORDS)
        elif kind == 6:
            deep: Any = node[key]
            for _ in range(draw.choice((5, 90, 250))):
                deep = [deep]
            node[key] = deep
        else:
            node[key] = copy.deepcopy(draw.choice(VALUES))
    return tree


def _containers(tree: Any) -> list[Any]:
    found, level = [], [tree]
    while level:
        inside = [node for node in level if isinstance(node, dict | list)]
        found += inside
        level = [value for node in inside for value in (node.values() if isinstance(node, dict) else node)]
    return found


def mutated_json(tree: Any, draw: random.Random) -> bytes:
    """A tree gone wrong as JSON, of which now and then the text goes wrong too."""
    text = json.dumps(mutated_tree(tree, draw) if draw.random() < 0.85 else tree, ensure_ascii=draw.random() < 0.5)
    if draw.random() < 0.1:  # a key that occurs twice
        text = re.sub(r'("[^"]*": [^,{}\[\]]*),', r"\1, \1,", text, count=1)
    if draw.random() < 0.15:
        text = mutated_text(text, draw)
    content = text.encode("utf-8", "surrogatepass")
    return mutated_bytes(content, draw) if draw.random() < 0.1 else content
