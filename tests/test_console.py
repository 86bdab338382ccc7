"""Labels, names and paths are text: a terminal shows them as they are, square brackets and all."""

import ast
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

import temporalzoom
from temporalzoom.console import plain_console
from temporalzoom.metrics import evaluate_detections, per_class_table
from temporalzoom.segments import Segments

PACKAGE = Path(temporalzoom.__file__).parent
LABELS = ("[walk]", "[/red]", "[bold]", ":smile:")
TAG = re.compile(r"\[/?(bold|dim|red|green|yellow|cyan|italic)\b.*?\]|\[/\]")
TINY = ("training.steps=3", "model.width=16", "model.heads=2", "model.name=uniform-1", "training.batch_size=2")


def test_a_console_prints_what_it_is_given():
    console = plain_console(file=io.StringIO(), width=200)
    table = Table("[bold]", title="[/red]")
    table.add_row("[walk]")
    table.caption = ":smile:"
    console.print("a[/b]", table)
    for text in ("a[/b]", *LABELS):
        assert text in console.file.getvalue()


def calls(tree: ast.AST):
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_console_with_markup_and_no_text_with_markup(path):
    """Every console is made in one place, and nothing that is printed holds a tag."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in calls(tree):
        name = name_of(call)
        if path.name != "console.py":
            assert name != "Console", f"{path}:{call.lineno} makes a console of its own: use plain_console"
        assert name not in ("from_markup", "rprint"), f"{path}:{call.lineno}"
        assert not any(word.arg == "markup" and getattr(word.value, "value", None) is True for word in call.keywords)
        if name in ("print", "say", "note", "add_row", "add_column", "Table", "add_task", "update", "Progress"):
            texts = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            tags = [
                text for text in texts if re.search(r"\[/?(bold|dim|red|green|yellow|cyan|italic|/)\b.*?\]|\[/\]", text)
            ]
            assert not tags, f"{path}:{call.lineno} prints markup: {tags}"


def test_tables_are_text_on_any_console():
    """Also on the console of a user, which has markup."""
    truth = {"a[/b]": Segments([0, 2, 4, 6], [1, 3, 5, 7], LABELS)}
    console = Console(file=io.StringIO(), width=200)
    console.print(per_class_table(evaluate_detections(truth, truth, [0.5]), title="[/x]"))
    console.print(truth["a[/b]"].table(title="a[/b]"))
    for text in ("[/x]", "a[/b]", *LABELS):
        assert text in console.file.getvalue()


@pytest.fixture
def bench(tmp_path, tzoom):
    """Recordings and classes with names that rich would read."""
    folder = tmp_path / "data[/b]"
    sizes = ("sequences=4", "test_sequences=2", "length=256", "dimension=8", "classes=4")
    assert tzoom("data", "make-zoombench", "--out", folder, *sizes)[0] == 0
    path = folder / "annotations.json"
    document = json.loads(path.read_text())
    for recording in document["database"].values():
        for number, annotation in enumerate(recording["annotations"]):
            annotation["label"] = LABELS[number % len(LABELS)]
    renamed = {}
    for number, (name, recording) in enumerate(document["database"].items()):
        new = f"a[b]{number}"
        [file] = folder.rglob(f"{name}.npy")
        file.rename(file.with_name(f"{new}.npy"))
        for beside in folder.rglob(f"{name}.json"):
            beside.rename(beside.with_name(f"{new}.json"))
        renamed[new] = recording
    document["database"], document["classes"] = renamed, list(LABELS)
    path.write_text(json.dumps(document))
    return folder


def test_commands_print_names_as_they_are(bench, tmp_path, tzoom):
    run = tmp_path / "r[/b]"

    def ran(*arguments):
        code, out, err = tzoom(*arguments)
        assert code == 0 and "Traceback" not in err, err
        return out + err

    features = sorted(bench.rglob("a*.npy"))
    assert str(run) in ran("train", bench / "config.yaml", *TINY, "--out", run).replace("\n", "")
    printed = ran("eval", "--model", run)
    assert [label for label in LABELS if label not in printed] == []
    printed = ran("localize", features[0], "--model", run, "--threshold", 0)
    assert features[0].stem in printed
    checked = ran("data", "check", bench / "config.yaml")
    assert [label for label in LABELS if label not in checked] == []
    out = tmp_path / "o[/b].json"
    assert str(out) in ran("localize", features[0], "--model", run, "--threshold", 0, "--out", out)
    report = tmp_path / "p[/b].html"
    ran("eval", "--model", run, "--report", report)
    code, _, err = tzoom("localize", tmp_path / "none[/b].npy", "--model", run)
    assert code == 2 and "none[/b].npy" in err
    code, _, err = tzoom("localize", features[0], "--model", run, "--top", "[/b]")
    assert code == 2 and "Traceback" not in err


def test_plots_and_pages_take_such_names(tmp_path):
    segments = Segments([0, 2, 4, 6], [1, 3, 5, 7], LABELS)
    ticks = segments.plot().get_yticklabels()
    assert [tick.get_text() for tick in ticks] == list(LABELS)
    assert all(label in segments._repr_html_() for label in LABELS)
    assert np.array_equal(segments.labels, LABELS)
