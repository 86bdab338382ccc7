"""The pages keep what they promise: commands and snippets of README and docs are run, in a folder like the one they
speak of; what cannot run in a test is checked against the real command line, its recipes and settings."""

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
import typer.main
import yaml
from typer.core import TyperGroup

import temporalzoom
from pages import PAGES, README, REPOSITORY, SHELLS, Block, blocks, commands, inline_code, page_commands, snippets
from temporalzoom import config as config_room
from temporalzoom import extract_features, train, write_segments
from temporalzoom.cli import app
from temporalzoom.config import load_config
from temporalzoom.config.data import SECTIONS as SOURCES
from temporalzoom.config.networks import SECTIONS as NETWORKS
from temporalzoom.config.recipes import recipe_names
from temporalzoom.config.reference import markdown_page, setting_rows
from temporalzoom.datasets.zoombench_scenes import VideoBench
from temporalzoom.datasets.zoombench_video import clip_name, video_annotations, write_zoombench_video
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.registry import find_table
from temporalzoom.segments import Segments
from temporalzoom.workflows.sweep_file import read_sweep

LANGUAGES = (*SHELLS, "python", "yaml", "json", "csv", "xml", "diff", "text")
# The lowest score lets a network that has learned nothing find something.
FEW_STEPS = """
training.steps=2 training.batch_size=2 training.length=48 training.warmup_steps=1 model.width=16
inference.min_score=1e-6
""".split()
FEW_SEQUENCES = "data.sequences=4 data.test_sequences=2 data.length=96".split()
INCOMPLETE = ("MissingParameter", "NoArgsIsHelpError", "BadOptionUsage")
UsageError: Any = typer.BadParameter.__mro__[1]  # newer versions of typer have their own copy of click


# Commands against the real command line


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """`tzoom` and its arguments -> the command, such as `data check`, and its values; a usage error is raised."""
    command: Any = typer.main.get_command(app)
    context, names, arguments = None, [], words[1:]
    while isinstance(command, TyperGroup):
        context = command.context_class(command, parent=context, info_name=words[0])
        name, command, arguments = command.resolve_command(context, arguments)
        names.append(name)
    return " ".join(names), command.make_context(names[-1], list(arguments), parent=context).params


def settings_of(values: dict[str, Any]) -> list[str]:
    return [*(values.get("overrides") or ()), *(values.get("settings") or ())]


def check_tzoom(words: list[str]) -> None:
    """Options, recipes, settings and tables exist."""
    name, values = parsed(words)
    if name in ("train", "data check", "cost") and values["config"] in recipe_names():
        load_config(values["config"], settings_of(values))
    if name == "recipes" and values["name"]:
        assert values["name"] in recipe_names(), words
    if name == "bench" and not values["show"]:
        trainings = find_table(values["table"]).trainings(values["data_set"])
        assert not values["data"] and not values["stem"], words
        for system in values["systems"].split(",") if values["systems"] else trainings:
            training_config(values["data_set"], values["root"], 0, trainings[system], settings_of(values))


def check_make(words: list[str]) -> None:
    assert re.search(rf"^{words[1]}:", (REPOSITORY / "Makefile").read_text(), re.M), words


def check_pip(words: list[str]) -> None:
    """`pip install ".[video]"`: this project, with extras that it has."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    target = re.fullmatch(r"\.(?:\[([\w,]+)\])?", words[2])
    assert words[1] == "install" and target is not None, words
    assert set((target[1] or "dev").split(",")) <= set(project["optional-dependencies"]), words


def check_python(words: list[str]) -> None:
    """A script of benchmarks/ with options that it has; tests/test_benchmarks.py runs them."""
    source = (REPOSITORY / words[1]).read_text(encoding="utf-8")
    assert all(f'"{word}"' in source for word in words[2:] if word.startswith("--")), words


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "tzoom": check_tzoom,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_one(page):
    for words in page_commands(page):
        assert words[0] in CHECKS, f"{page.name}: {shlex.join(words)}: not known to this test"
        CHECKS[words[0]](words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_read(page):
    """A fence that the parser does not see, or a language that no test looks at, would be a page that is not tested."""
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    fences = re.findall(r"^ *(?:```|~~~)", text, re.M)
    assert len(fences) == 2 * sum(bool(block.language) for block in found)
    assert {block.language for block in found} <= {*LANGUAGES, ""}
    assert all(commands(block) for block in found if block.language in SHELLS)
    if page.name != "configuration.md":
        assert any(block.language in (*SHELLS, "python") for block in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```sh\ntzoom train zoombench --stps 3\n```\n", "No such option"),
        ("```console\n$ tzoom trian zoombench\nresult\n```\n", "No such command"),
        ("Text.\n\n    tzoom bench zoombench --table sistems\n", "no table"),
        ("```bash\ntzoom train zoombench --set training.stps=3\n```\n", "training.stps"),
        ('```sh\npip install ".[vdeo]"\n```\n', ""),
        ("```sh\nmake demmo\n```\n", ""),
        ("```sh\npython benchmarks/scaling.py --wide 3\n```\n", ""),
    ],
)
def test_a_wrong_page_is_noticed(text, message, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(Exception) as error:
        test_every_command_is_one(page)
    assert message in getattr(error.value, "message", str(error.value))


def test_blocks_of_a_page():
    page = "a\n```sh\n$ tzoom x\n```\n\n    make y\n    z\n\n- item\n\n~~~\n```\n~~~\n````python\n```\n````\n"
    found = [(block.language, block.text, block.line) for block in blocks(page)]
    assert found == [("sh", "$ tzoom x", 3), ("", "make y\nz", 6), ("", "```", 12), ("python", "```", 15)]
    with pytest.raises(AssertionError, match="line 1"):
        blocks("```sh\ntzoom demo\n")


# What stands between the blocks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_settings_in_the_text_exist(page):
    names = {f"data.{key}" for section in SOURCES.values() for key in section.model_fields}
    names |= {f"model.{key}" for section in NETWORKS.values() for key in section.model_fields}
    names |= {row.key for source in SOURCES for row in setting_rows([f"data.source={source}"])}
    names |= {row.key for name in (*NETWORKS, "uniform-6") if name != "uniform" for row in _rows_of(name)}
    names |= {key.rpartition(".")[0] for key in names}
    names |= set(config_room.config_fields())
    sections = "data|model|bdr|training|augment|backbone|inference|evaluation"
    for code in inline_code(page):
        setting = re.fullmatch(rf"((?:{sections})\.[a-z_.]+?)(?:\.\*)?(?:[=:].*)?", code)
        if setting:
            assert setting[1] in names, f"{page.name}: `{code}`"
        if code.startswith("tzoom ") and not {"-h", "--help"} & set(code.split()):
            try:
                parsed(shlex.split(code))
            except UsageError as error:  # in a sentence, a command may leave out what it is about
                assert type(error).__name__ in INCOMPLETE, f"{page.name}: `{code}`"


def _rows_of(model: str) -> list[Any]:
    return setting_rows([f"model.name={model}"])


OTHERS = [REPOSITORY / name for name in ("benchmarks/LOG.md", "CHANGELOG.md", "CONTRIBUTING.md")]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in slugs, target


def test_settings_are_documented_as_they_are():
    page = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == markdown_page(), "tzoom settings --markdown > docs/configuration.md"


def test_every_page_is_linked_from_the_readme():
    text = README.read_text(encoding="utf-8")
    assert not [page.name for page in PAGES[1:] if f"docs/{page.name}" not in text]


def test_every_public_name_has_an_example():
    page = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    code = "\n".join(block.text for block in blocks(page) if block.language == "python")
    names = [name for name in temporalzoom.__all__ if not name.startswith("_")]
    assert not [name for name in names if not re.search(rf"\b{name}\(|\b{name}\.load\(", code)]


# Snippets that are data


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_yaml_json_and_xml_are_valid(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in snippets(page, "yaml", "json", "xml"):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "xml":
            ElementTree.fromstring(block.text)
        else:
            load_yaml(block, tmp_path)


def load_yaml(block: Block, folder: Path) -> Path:
    """A configuration or a sweep, saved under the name of its first line and read."""
    name = re.match(r"# (\S+\.yaml)\n", block.text)
    path = folder / (name[1] if name else f"line-{block.line}.yaml")
    path.write_text(block.text, encoding="utf-8")
    if "systems" in yaml.safe_load(block.text):
        assert len(read_sweep(path).members) > 1
    else:
        load_config(path)
    return path


# Pages that are run


def write_other_formats(folder: Path, truth: dict[str, Segments]) -> None:
    """The same actions as users of other tools have them, under the names and with the labels of the pages."""
    words = sorted({label for found in truth.values() for label in found.labels.tolist()})
    named = dict(zip(words, ["rally", "serve", *words[2:]], strict=True))
    truth = {
        name: Segments(found.starts, found.ends, [named[label] for label in found.labels.tolist()])
        for name, found in truth.items()
    }
    files = {"events.boris.tsv": "events.tsv", "project-1.labelstudio.json": "project-1.json"}
    files |= {
        "p.via.json": "via_project.json",
        "speakers.rttm": "speakers.rttm",
        "coded.xlsx": "coded.xlsx",
        "actions.csv": "actions.csv",
    }
    for written, name in files.items():
        write_segments(folder / written, truth)[0].rename(folder / name)
    write_segments(folder / "elan.eaf", truth)
    write_segments(folder / "targets_inserted.simba.csv", truth, fps=10)
    match7 = {"match7": truth["match7"]}
    write_segments(folder / "match7_labels.deepethogram.csv", match7, fps=10)[0].rename(folder / "match7_labels.csv")
    write_segments(folder / "match7.audacity.txt", match7)[0].rename(folder / "match7.txt")
    rows = [f"{name};{start};{end};{label}" for name, found in truth.items() for start, end, label, _ in found]
    (folder / "coded.csv").write_text("\n".join(["Spiel;Anfang;Ende;Was", *rows]))


@pytest.fixture(scope="session")
def tennis(tmp_path_factory) -> Path:
    """The folder that pages speak of: videos, features, annotations in several formats, a trained run."""
    folder = tmp_path_factory.mktemp("tennis")
    bench = VideoBench(clips=4, seconds=6, size=64, fps=10)
    write_zoombench_video(folder / "clips", bench)
    recordings = video_annotations(bench).recordings
    truth, database = {}, {}
    (folder / "videos").mkdir()
    for index, name in enumerate(("match7", "match8", "match9")):
        recording = recordings[clip_name(index)]
        shutil.copy(folder / "clips" / f"{clip_name(index)}.mp4", folder / "videos" / f"{name}.mp4")
        truth[name] = recording.segments
        records = [{"label": e["label"], "segment": e["segment"]} for e in recording.segments.to_records()]
        subset = "test" if name == "match9" else "train"
        database[name] = {"subset": subset, "duration": 6.0, "fps": 10, "annotations": records}
    (folder / "annotations.json").write_text(json.dumps({"database": database}))
    (folder / "T.json").write_text(json.dumps({"database": database}))
    write_other_formats(folder, truth)
    write_segments(folder / "P.json", truth)
    shutil.copy(folder / "videos" / "match9.mp4", folder / "match9.mp4")
    extract_features([folder / "videos"], folder / "features")
    config = next(block for block in snippets(README, "yaml") if block.text.startswith("# tennis.yaml"))
    train(load_yaml(config, folder), folder / "runs" / "tennis", overrides=FEW_STEPS)
    return folder


@pytest.fixture
def folder(tennis, tmp_path, monkeypatch) -> Path:
    copy = shutil.copytree(tennis, tmp_path / "folder")
    monkeypatch.chdir(copy)
    return copy


def smaller(words: list[str], name: str, values: dict[str, Any]) -> list[str] | None:
    """The command as a test can run it; None: data that are not here, or hours."""
    if name in ("demo", "bench"):  # have tests of their own, which run them
        return words if values.get("show") else None
    if name in ("train", "data check", "cost") and values["config"] is not None:
        config = load_config(values["config"], settings_of(values))
        files = [getattr(config.data, key, None) for key in ("root", "annotations")]
        if values["config"] in recipe_names() and any(file and not Path(file).exists() for file in files):
            return None
        if config.data.__dict__.get("videos") is not None:
            return None  # a backbone is trained by tests/training/test_end_to_end.py
        words = words + [f"--set={setting}" for setting in FEW_STEPS if name == "train"]
        words += [f"--set={setting}" for setting in FEW_SEQUENCES if config.data.source == "zoombench"]
    if name == "cost":
        words = [*words, "--repeats", "1"]
    if name == "data make-zoombench-video":
        words = [*words, "--clips", "4", "--seconds", "6", "--size", "64"]
    if name == "cuts" or values.get("cuts"):  # a network at twenty frames per second
        words = [word if word != "videos/" else "videos/match8.mp4" for word in words]
    if values.get("backbone") not in (None, "motion", "efficientnet_lite0"):
        return None  # weights that are downloaded
    return words


def run_page(page: Path, run: Callable[..., tuple[int, str, str]], folder: Path, monkeypatch: Any) -> int:
    """Every block in the order of the page; the number of commands and snippets that ran."""
    for words in page_commands(page):  # what the page itself makes is not there yet
        if words[0] == "tzoom" and parsed(words)[0] in ("train", "extract"):
            shutil.rmtree(folder / parsed(words)[1]["out"], ignore_errors=True)
    never_trained: set[Path] = set()
    space: dict[str, Any] = {}
    count = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "yaml":
            path = load_yaml(block, folder)
            if "systems" in (tree := yaml.safe_load(block.text)):
                systems = {name: [*given, *FEW_STEPS, *FEW_SEQUENCES] for name, given in tree["systems"].items()}
                last = list(systems)[-1]
                path.write_text(yaml.safe_dump({**tree, "systems": {last: systems[last]}, "seeds": tree["seeds"][:1]}))
        elif block.language == "python" and not is_quoted(block.text):
            with monkeypatch.context() as patch:
                patch.setattr(config_room, "load_config", in_few_steps)
                exec(compile(block.text, f"{page.name}, line {block.line}", "exec"), space)
            count += 1
        elif block.language in (*SHELLS, ""):
            for words in commands(block):
                if words[0] != "tzoom":
                    continue
                name, values = parsed(words)
                short = None if values.get("model") in never_trained else smaller(words, name, values)
                if short is None:
                    never_trained |= {values["out"]} if name == "train" else set()
                    continue
                code, out, err = run(*short[1:])
                assert code == 0, f"{page.name}: {shlex.join(words)}: {err}"
                assert out.strip(), words
                count += 1
    return count


def is_quoted(code: str) -> bool:
    """Shown, not run: a part of the package as it is."""
    return any(code.strip() in path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))


def in_few_steps(path: Any = None, overrides: Any = ()) -> Any:
    """`load_config` for a snippet: its own width, but few steps and sequences."""
    few = [setting for setting in FEW_STEPS if not setting.startswith("model.")]
    if load_config(path, overrides).data.source == "zoombench":
        few += FEW_SEQUENCES
    return load_config(path, [*overrides, *few])


AT_LEAST = {"datasets.md": 1, "real-data.md": 1, "configuration.md": 0, "add-bdr.md": 0}  # others: two commands or more
LONG = ("sweeps.md", "video.md")
FOLLOWED = [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=page.name) for page in PAGES]


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed(page, folder, tzoom, monkeypatch):
    assert run_page(page, tzoom, folder, monkeypatch) >= AT_LEAST.get(page.name, 2)
