"""The pages of README and docs as blocks, commands and snippets."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").glob("*.md"))]
SHELLS = ("sh", "bash", "console", "shell")
PROGRAMS = ("tzoom", "make", "pip", "python")


@dataclass(frozen=True)
class Block:
    """A fenced or indented block of a page. line: of its first line."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """Fenced blocks, by the rules of CommonMark that pages use, and indented ones (four spaces after an empty line)."""
    found, lines = [], page.splitlines()
    fence, language, opened, inside = "", "", 0, []
    for number, line in enumerate(lines, 1):
        mark = re.match(r" {0,3}(`{3,}|~{3,})\s*([\w+-]*)", line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2]:
                found.append(Block(language, "\n".join(inside), opened + 1))
                fence, inside = "", []
            else:
                inside.append(line)
        elif mark:
            fence, language, opened = mark[1], mark[2], number
        elif line.startswith("    ") and number > 1 and not lines[number - 2].strip():
            indented = itertools.takewhile(lambda text: text.startswith("    "), lines[number - 1 :])
            found.append(Block("", "\n".join(text[4:] for text in indented), number))
    assert not fence, f"line {opened}: the block is never closed"
    return found


def commands(block: Block) -> list[list[str]]:
    """The commands of a block, as words: lines with a prompt where there are any, else all lines."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    words = [shlex.split(line, comments=True) for line in lines]
    if block.language not in SHELLS:
        words = [command for command in words if command and command[0] in PROGRAMS]
    return [command for command in words if command]


def page_commands(page: Path) -> list[list[str]]:
    found = blocks(page.read_text(encoding="utf-8"))
    return [words for block in found if block.language in (*SHELLS, "") for words in commands(block)]


def snippets(page: Path, *languages: str) -> Iterator[Block]:
    return (block for block in blocks(page.read_text(encoding="utf-8")) if block.language in languages)


def inline_code(page: Path) -> list[str]:
    text = re.sub(r"^( *)(`{3,}|~{3,}).*?^ *\2", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]
