"""The rules of the house, checked on the source itself: who may import whom, and how files are named and sized."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import temporalzoom

PACKAGE = Path(temporalzoom.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Lowest first. A room imports only from rooms of lower layers.
LAYERS = (
    ("errors", "json_tree", "segments", "timegrid", "bdr"),
    ("locks",),
    ("atomic", "config", "console", "device", "interrupts", "progress"),
    ("processes",),
    ("formats", "signals", "metrics"),
    ("datasets", "models"),
    ("runs",),
    ("training", "inference"),
    ("viewer",),
    ("workflows",),
    ("experiments",),
    ("cli",),
)
LAYER = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}
# Tighter than the layers: all that these rooms may know of the package.
KNOWS = {
    "errors": set(),
    "json_tree": set(),
    "segments": set(),
    "timegrid": set(),
    "bdr": set(),
    "atomic": {"errors", "locks"},
    "locks": {"errors"},
    "interrupts": set(),
    "progress": {"errors"},
    "config": {"errors"},
    "console": set(),
    "device": {"errors"},
    "processes": {"errors", "device"},
    "formats": {"errors", "json_tree", "segments", "atomic"},
    "metrics": {"errors", "segments"},
    "signals": {"errors", "json_tree", "segments", "timegrid", "atomic", "console", "device", "interrupts"}
    | {"locks", "progress"},
    "models": {"errors", "bdr", "device", "processes"},
    "runs": {"errors", "json_tree", "timegrid", "bdr", "atomic", "config", "models", "signals"},
    "datasets": {"errors", "json_tree", "segments", "timegrid", "atomic", "config", "console", "formats"}
    | {"progress", "signals"},
    "training": {"errors", "json_tree", "segments", "timegrid", "bdr", "atomic", "config", "datasets"}
    | {"models", "runs", "signals"}
    | {"console", "interrupts", "processes", "progress"},
    "inference": {"errors", "json_tree", "segments", "timegrid", "bdr", "atomic", "config", "formats"}
    | {"metrics", "models", "runs"}
    | {"signals"},
    "viewer": {"errors", "segments", "timegrid", "atomic", "console", "metrics", "progress"},
}
OUTSIDE = {"__init__", "__main__"}  # of the package: what the public may know, and `python -m temporalzoom`
CORE = {"torch", "numpy", "scipy", "safetensors", "pydantic", "pydantic_core", "yaml", "typer", "rich", "matplotlib"}
CORE |= sys.stdlib_module_names


class Import(NamedTuple):
    module: str  # absolute, `temporalzoom.bdr.loss`
    always: bool  # at module level: importing the file imports it too
    line: int
    names: tuple[str, ...] = ()  # of `from module import names`


def imports(path: Path, package: Path = PACKAGE) -> Iterator[Import]:
    """Every import of a file, wherever it stands; relative ones made absolute."""
    here = [package.name, *path.relative_to(package).with_suffix("").parts]

    def visit(node: ast.AST, always: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, always, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level], *([node.module] if node.module else [])] if node.level else None
            module = node.module or "" if base is None else ".".join(base)
            # `from temporalzoom import bdr` names the room last.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == package.name else [module]
            taken = tuple(alias.name for alias in node.names)
            yield from (Import(name, always, node.lineno, taken) for name in names)
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        )
        for child in ast.iter_child_nodes(node):
            yield from visit(child, always and not later)

    return visit(ast.parse(path.read_text(encoding="utf-8")), True)


def room_of(path: Path, package: Path = PACKAGE) -> str:
    """The folder or the single file directly below the package; the package's own `__init__` is no room."""
    return path.relative_to(package).with_suffix("").parts[0]


def known_rooms(path: Path, package: Path = PACKAGE) -> dict[str, int]:
    """Rooms that a file imports from, and the line where."""
    modules = [(i.module.split("."), i.line) for i in imports(path, package)]
    rooms = {parts[1]: line for parts, line in modules if parts[0] == package.name and len(parts) > 1}
    return {room: line for room, line in rooms.items() if room != room_of(path, package)}


def room_graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        graph.setdefault(room_of(path, package), set()).update(known_rooms(path, package))
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


# Who imports whom


def test_every_room_has_a_layer():
    assert {room_of(path) for path in FILES} - OUTSIDE == set(LAYER)


def test_dependencies_point_downward():
    for path in FILES:
        room = room_of(path)
        if room in OUTSIDE:
            continue
        for other, line in known_rooms(path).items():
            assert LAYER[other] < LAYER[room], f"{name(path)}:{line}: {room} must not know {other}"
            assert other in KNOWS.get(room, LAYER), f"{name(path)}:{line}: {room} must not know {other}"


def test_no_cycle_between_rooms():
    graph = room_graph()
    assert len(graph) > 10 and graph["training"] >= {"models", "datasets", "bdr", "config"}
    assert cycle(graph) == []


def module_name(path: Path, package: Path = PACKAGE) -> str:
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Which file imports which, lazily or not. A package's `__init__` only gathers names: it is left out."""
    paths = {module_name(path, package): path for path in sorted(package.rglob("*.py")) if path.stem != "__init__"}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        named = {m for i in imports(path, package) for m in (i.module, *(f"{i.module}.{n}" for n in i.names))}
        graph[module] = {other for other in named if other in paths and other != module}
    return graph


def test_no_cycle_between_files():
    graph = file_graph()
    assert len(graph) > 100
    assert cycle(graph) == []


def test_optional_packages_are_imported_where_they_are_used():
    """At module level only declared dependencies; h5py, tensorboard and such inside functions."""
    for path in FILES:
        for imported in imports(path):
            if imported.always and not imported.module.startswith("temporalzoom"):
                top = imported.module.split(".")[0]
                assert top in CORE, f"{name(path)}:{imported.line}: {imported.module} is no core dependency"
                assert imported.module != "torch.utils.tensorboard", f"{name(path)}:{imported.line}: needs tensorboard"


def test_bdr_can_be_lifted_out():
    allowed = {"torch", "numpy"} | sys.stdlib_module_names
    for path in (PACKAGE / "bdr").glob("*.py"):
        foreign = {i.module.split(".")[0] for i in imports(path) if not i.module.startswith("temporalzoom.bdr")}
        assert foreign <= allowed, name(path)


def test_these_tests_see_what_they_forbid(tmp_path: Path):
    """The collector on a house with every fault: relative, lazy and guarded imports all count."""
    package = tmp_path / "temporalzoom"
    sources = {
        "bdr/loss.py": "from ..config import Config\nfrom .. import errors\nfrom . import arrays\nfrom .head import H",
        "config.py": "def late():\n    import temporalzoom.models.registry as r\n    import h5py",
        "models/registry.py": "if TYPE_CHECKING:\n    from temporalzoom.bdr import loss\nimport yaml",
        "exports.py": "from temporalzoom import atomic",
    }
    for file, text in sources.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(text)
    assert room_graph(package) == {
        "bdr": {"config", "errors"}, "config": {"models"}, "models": {"bdr"}, "exports": {"atomic"},
    }  # fmt: skip
    assert set(cycle(room_graph(package))) == {"bdr", "config", "models"}
    assert set(cycle(file_graph(package))) == {f"temporalzoom.{m}" for m in ("bdr.loss", "config", "models.registry")}
    assert [i.module for i in imports(package / "config.py", package) if i.always] == []
    assert [i.module for i in imports(package / "models/registry.py", package) if i.always] == ["yaml"]
    found = [i.module for i in imports(package / "bdr/loss.py", package)]
    assert found == ["temporalzoom.config", "temporalzoom.errors", "temporalzoom.bdr", "temporalzoom.bdr.head"]


@pytest.mark.parametrize("module", ["temporalzoom", "temporalzoom.cli", "temporalzoom.config"])
def test_a_light_import_does_not_load_torch(module: str):
    code = f"import sys, {module}; print(*sorted({{'torch', 'scipy', 'matplotlib'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Files


def test_a_file_has_one_subject():
    for path in FILES:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 400, f"{name(path)} has {lines} lines: it is two files"
        assert not {"utils", "util", "common", "helpers", "helper", "misc"} & set(
            path.relative_to(PACKAGE).with_suffix("").parts
        )


def test_a_file_says_what_it_is_about():
    for path in FILES:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring and len(docstring.splitlines()[0]) > 15, f"{name(path)} has no docstring"


def test_exported_names_exist():
    """`__all__`, where a file has one, holds names that the file defines or imports."""
    for path in FILES:
        exported: list[str] = []
        defined: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                defined |= names
                if "__all__" in names:
                    exported = ast.literal_eval(node.value)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
        assert set(exported) <= defined and len(set(exported)) == len(exported), name(path)
