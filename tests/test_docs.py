"""The pages keep what they promise: every command and every snippet of README and docs is run, made small, in a folder
like the one that they speak of; and as it stands it is checked against the command line, its recipes and settings."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer

import temporalzoom
from page_data import write_data_sets
from page_runner import FEW_STEPS, NOT_RUN, PageRun, load_yaml, make_lines, parsed, settings_of
from pages import PAGES, README, REPOSITORY, SHELLS, blocks, commands, inline_code, page_commands, snippets
from small_walks import write_walks
from temporalzoom import config as config_room
from temporalzoom import extract_features, train, write_segments
from temporalzoom.config import load_config
from temporalzoom.config.data import SECTIONS as SOURCES
from temporalzoom.config.networks import SECTIONS as NETWORKS
from temporalzoom.config.recipes import recipe_names
from temporalzoom.config.reference import markdown_page, setting_rows
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench_scenes import VideoBench
from temporalzoom.datasets.zoombench_video import clip_name, video_annotations, write_zoombench_video
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.registry import find_table
from temporalzoom.segments import Segments

LANGUAGES = (*SHELLS, "python", "yaml", "json", "csv", "xml", "diff", "text")
INCOMPLETE = ("MissingParameter", "NoArgsIsHelpError", "BadOptionUsage")
UsageError: Any = typer.BadParameter.__mro__[1]  # newer versions of typer have their own copy of click


# Commands against the real command line


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
    """What the target would run: `tzoom` commands that exist, options that pytest and this project have."""
    for line in make_lines(words):
        line[0] = Path(line[0]).name
        if line[0] == "tzoom":
            check_tzoom(line)
        elif line[1:3] == ["-m", "pip"]:
            check_pip(line[2:])
        elif line[1:3] == ["-m", "pytest"]:
            collect = ["--collect-only", "--noconftest", "tests/test_timegrid.py"]
            command = [sys.executable, *line[1:], *collect]
            done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
            assert done.returncode in (0, 5), done.stderr  # 5: none of these tests is chosen


def check_pip(words: list[str]) -> None:
    """`pip install ".[video]"`: this project, with extras that it has."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    target = re.fullmatch(r"\.(?:\[([\w,]+)\])?", words[-1])
    assert words[1] == "install" and target is not None, words
    assert set((target[1] or "dev").split(",")) <= set(project["optional-dependencies"]), words


def check_python(words: list[str]) -> None:
    """A script of benchmarks/ with options that it has."""
    source = (REPOSITORY / words[1]).read_text(encoding="utf-8")
    assert all(f'"{word}"' in source for word in words[2:] if word.startswith("--")), words


def check_torchrun(words: list[str]) -> None:
    """`torchrun --nproc-per-node N -m temporalzoom` and a command of `tzoom`."""
    own = words.index("-m")
    assert own == 3 and words[1] == "--nproc-per-node" and words[2].isdecimal(), words
    assert words[own + 1 : own + 3] == ["temporalzoom", "train"], words
    check_tzoom(["tzoom", *words[own + 2 :]])


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "tzoom": check_tzoom,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
    "torchrun": check_torchrun,
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
    """The folder that pages speak of: videos, features, annotations in several formats, a trained run, data sets."""
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
    write_walks(folder)
    page = REPOSITORY / "docs" / "own-data.md"
    config = next(block for block in snippets(page, "yaml") if block.text.startswith("# tennis.yaml"))
    train(load_yaml(config, folder), folder / "runs" / "tennis", overrides=FEW_STEPS)
    write_data_sets(folder / "data", REPOSITORY.parent / "shared" / "data")
    return folder


@pytest.fixture
def folder(tennis, tmp_path, monkeypatch) -> Path:
    copy = shutil.copytree(tennis, tmp_path / "folder")
    monkeypatch.chdir(copy)
    return copy


LONG = (
    "adaptive-depth.md",
    "depth-competitors.md",
    "detectors.md",
    "fit.md",
    "python.md",
    "real-data.md",
    "sweeps.md",
    "video.md",
)
FOLLOWED = [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=page.name) for page in PAGES]


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_followed(page, folder, tzoom, monkeypatch):
    done = PageRun(folder, tzoom, monkeypatch)
    done.follow(page)
    # Nothing was left out: each command and snippet ran, is quoted from the package, or is of a program not to be run.
    shown = page_commands(page)
    assert sorted(done.not_run) == sorted(shlex.join(words) for words in shown if words[0] in NOT_RUN)
    assert len(done.ran) + len(done.not_run) + len(done.quoted) == len(shown) + len(list(snippets(page, "python")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```sh\ntzoom recipes nowhere\n```\n", "page.md, line 2: tzoom recipes nowhere: .*nowhere"),
        ("```sh\npython benchmarks/scaling.py --wide 3\n```\n", "unrecognized arguments: --wide"),
        ("```sh\ncurl example.org\n```\n", "curl"),
        ("```python\nassert 1 == 2\n```\n", None),
    ],
)
def test_what_cannot_be_followed_is_noticed(text, message, tmp_path, tzoom, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises((AssertionError, KeyError), match=message):
        PageRun(tmp_path, tzoom, monkeypatch).follow(page)


def test_data_sets_of_noise_stand_in_for_the_real_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data_sets(tmp_path / "data", tmp_path / "nowhere")
    for recipe in ("sbhar", "tug", "rats", "salads", "thumos14"):
        loaded = load_data(load_config(recipe).data)
        assert loaded.train is not None and loaded.test is not None, recipe
        assert all(len(sample.segments) for sample in (*loaded.train.samples, *loaded.test.samples)), recipe
