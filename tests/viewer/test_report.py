"""The report file: well-formed, alone, escaped, the same twice."""

import base64
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.viewer.plots import plot_map_by_threshold, plot_timeline
from temporalzoom.viewer.report import Report

NASTY = "<script>alert('x & \"y\"')</script>"
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects them."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def texts(self, *tags):
        return [text for tag, text in self.words if tag in tags and text]


def timeline(label="jump"):
    truth = Segments([0, 30.0], [60, 70.0], [label, "run"])
    return plot_timeline(truth, {label: truth.shift(2.0)}, 100.0)


def crowded(seed=0):
    figure = Figure()
    figure.subplots().scatter(*np.random.default_rng(seed).uniform(size=(2, 5_000)), s=1)
    return figure


def sample():
    return (
        Report("Title", "Subtitle")
        .heading("Results")
        .text("First.\n\nSecond with `code`.")
        .table(["system", "mAP"], [["a", 0.5], ["b", 0.25]], highlight=[None, "max"], caption="Numbers.")
        .heading("Pictures")
        .figure(timeline(), "A timeline.")
        .figure(plot_map_by_threshold({"a": {0.5: 0.3, 0.7: 0.1}}), "A curve.", alt="mAP falls with tIoU")
        .heading("More")
        .figure(crowded(), "A crowd.")
    )


@pytest.fixture(scope="module")
def html():
    return sample().html()


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_page_is_well_formed_and_complete(page):
    assert page.texts("h1", "title") == ["Title", "Title"]
    assert page.texts("h2") == ["Results", "Pictures", "More"]
    assert page.texts("p") == ["Subtitle", "First.", "Second with", "."]
    assert page.texts("code") == ["code"]
    assert [text for text in page.texts("b") if text[:3] in ("Fig", "Tab")] == [
        "Table 1.", "Figure 1.", "Figure 2.", "Figure 3.",
    ]  # fmt: skip
    assert [link["href"] for link in page.all("a")] == ["#section-1", "#section-2", "#section-3"]
    assert {heading["id"] for heading in page.all("h2")} == {"section-1", "section-2", "section-3"}


def test_nothing_is_loaded_from_anywhere(html, page):
    assert {"link", "script", "iframe", "object"}.isdisjoint(tag for tag, _ in page.tags)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:"))
    assert "http://" not in html and "https://" not in html and "@import" not in html


def test_ids_are_unique_and_every_reference_has_its_target(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    clips = [attributes["clip-path"] for _, attributes in page.tags if "clip-path" in attributes]
    targets = [link["href"][1:] for link in page.all("use") + page.all("a")] + [clip[5:-1] for clip in clips]
    assert clips and set(targets) <= set(ids)


def test_pictures_say_what_they_show(page):
    assert [(svg["role"], svg["aria-label"]) for svg in page.all("svg")] == [
        ("img", "A timeline."), ("img", "mAP falls with tIoU"),
    ]  # fmt: skip
    (image,) = page.all("img")  # thousands of dots: an image is smaller than a drawing
    assert image["alt"] == "A crowd." and image["src"].startswith("data:image/png;base64,")


def test_words_of_the_user_are_escaped():
    report = Report(NASTY, NASTY).heading(NASTY).text(NASTY).table([NASTY], [[NASTY]], caption=NASTY)
    html = report.figure(timeline(NASTY), NASTY).figure(crowded(), NASTY).html()
    page = Page(html)
    assert "<script" not in html and not page.all("script")
    assert page.texts("h1") == page.texts("h2") == [NASTY]
    assert NASTY in page.texts("text")  # in the drawing
    assert page.all("svg")[0]["aria-label"] == page.all("img")[0]["alt"] == NASTY


@pytest.mark.filterwarnings("error")
def test_labels_in_any_script_and_with_dollars_are_text():
    texts = Page(Report("t").figure(timeline("跳 $5 or $10"), "c").html()).texts("text")
    assert "跳 $5 or $10" in texts


def test_same_input_gives_the_same_bytes(tmp_path):
    first, second = sample().write(tmp_path / "a" / "first.html"), sample().write(str(tmp_path / "second.html"))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 400_000
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "first.html", "second.html"]


def test_a_report_that_cannot_be_written_names_the_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        Report("t").write(tmp_path / "file" / "report.html")


def bold(page):
    return [text for text in page.texts("b") if not text.startswith("Table")]


def test_table_formats_aligns_and_marks_the_best():
    rows = [["a", 81.26, 7, "1.5 ± 0.1 ms", None], ["b", 81.34, 12, "12.0 ± 9.0 ms", 1.0], ["c", 9.0, 3, "–", np.nan]]  # noqa: RUF001
    report = Report("t").table(
        ["s", "mAP", "n", "time", "x"], rows, highlight=[None, "max", "min", "min", "max"], caption="c"
    )
    page = Page(report.html())
    assert page.texts("th") == ["s", "mAP", "n", "time", "x", "a", "b", "c"]
    assert page.texts("td", "b")[1:] == [  # behind the number of the table
        "81.3", "7", "1.5 ± 0.1 ms", "–",  # noqa: RUF001
        "81.3", "12", "12.0 ± 9.0 ms", "1.0",
        "9.0", "3", "–", "–",  # noqa: RUF001
    ]  # fmt: skip
    assert bold(page) == ["81.3", "1.5 ± 0.1 ms", "81.3", "3"]  # equal as printed; a value alone is no best
    assert all(cell.get("class") == "number" for cell in page.all("td"))
    assert [cell["scope"] for cell in page.all("th")] == ["col"] * 5 + ["row"] * 3


def test_table_with_one_mode_for_all_leaves_words_alone():
    rows = [["z", "−2.5", "yes"], ["y", "-10 %", "no"]]  # noqa: RUF001
    page = Page(Report("t").table(["s", "gain", "w"], rows, highlight="max", caption="c").html())
    assert bold(page) == ["−2.5"]  # noqa: RUF001
    assert [cell.get("class") for cell in page.all("td")] == ["number", None] * 2


@pytest.mark.parametrize(
    ("rows", "highlight"), [([["a"]], None), ([["a", 1]], ["max"]), ([["a", 1]], [None, "most"]), ([["a", 1]], "best")]
)
def test_table_that_does_not_fit(rows, highlight):
    with pytest.raises(ValueError):
        Report("t").table(["s", "mAP"], rows, highlight=highlight, caption="c")


def test_a_video_is_inside_the_page_and_files_are_linked_by_their_relative_path(tmp_path):
    (tmp_path / "a b.mp4").write_bytes(b"moving")
    html = Report("t").video(tmp_path / "a b.mp4", "A clip.").links([("a < b", "video/a.csv")]).html()
    (video,) = Page(html).all("video")
    assert video["src"] == "data:video/mp4;base64," + base64.b64encode(b"moving").decode()
    assert '<a href="video/a.csv">a &lt; b</a>' in html and "<b>Figure 1.</b> A clip." in html
    with pytest.raises(InputError, match=r"none\.mp4: cannot be read"):
        Report("t").video(tmp_path / "none.mp4", "A clip.")
