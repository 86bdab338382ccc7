"""The page of a detector's result: the words and numbers are on it, alone and escaped."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from test_report import NASTY, Page

from temporalzoom.metrics import evaluate_detections
from temporalzoom.metrics.errors import analyse
from temporalzoom.metrics.operating_point import threshold_curve
from temporalzoom.metrics.worst_cases import worst_stretches
from temporalzoom.segments import Segments
from temporalzoom.viewer.report import Report
from temporalzoom.viewer.result_page import case_words
from temporalzoom.viewer.result_plots import plot_error_kinds, plot_threshold_curves
from temporalzoom.viewer.timeline import MARK, plot_timeline
from temporalzoom.workflows.evaluate import Evaluation
from temporalzoom.workflows.report import write_report


def evaluation(truth, found, **more):
    return Evaluation(truth, found, evaluate_detections(truth, found, (0.3, 0.5)), None, **more)


def tennis(labels=("serve", "rally", "let"), recordings=12, seed=0):
    """Most instances are found, half a second late; every fifth is missed; some detections stand where nothing is."""
    generator = np.random.default_rng(seed)
    truth, found = {}, {}
    for index in range(recordings):
        starts = 20.0 * np.arange(10) + generator.uniform(0, 5, 10)
        true = [labels[i % len(labels)] for i in range(10)]
        truth[f"match{index}"] = Segments(starts, starts + 6, true)
        kept = np.arange(10) % 5 != 4
        late = Segments(starts[kept] + 0.5, starts[kept] + 6, np.array(true)[kept], generator.uniform(0.5, 1, 8))
        false = Segments([230, 250], [236, 256], [labels[0]] * 2, [0.9, 0.1])
        found[f"match{index}"] = Segments.concatenate([late, false])
    return truth, found


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    who = {f"match{i}": f"player {i % 4}" for i in range(12)}
    write_report(
        path,
        evaluation(*tennis(), subjects=who),
        thresholds=0.4,
        title="Tennis",
        notes=["Recorded indoors."],
        next_steps=["tzoom localize new.mp4 --model 'runs/my tennis' > found.csv"],
    )
    return path.read_text(encoding="utf-8")


def words(page):
    return " ".join(text for _, text in page.words if text).replace("\xa0", " ")


def test_the_words_and_numbers_are_there(html):
    page = Page(html)
    text = words(page)
    assert page.texts("h1") == ["Tennis"]
    assert "Finds 96 of 120 instances; 12 of its 108 detections are wrong." in text
    assert "Starts are found 0.5 s too late on average." in text
    assert "These numbers come from 12 recordings of 4 subjects with 120 instances." in text
    assert "80 % of the instances would be found" in text and "average mAP would be" in text
    assert "Recorded indoors." in text and "best F1" not in text  # the threshold was given
    assert "tzoom localize new.mp4 --model 'runs/my tennis' > found.csv" in text
    for heading in ("Verdict", "How far to trust it", "Class by class", "What goes wrong", "Where most goes wrong"):
        assert heading in page.texts("h2")
    assert "match0: of 10 instances 8 found, 2 missed; of 9 detections 1 wrong (1 background)." in text
    assert len([caption for caption in page.texts("figcaption") if caption.startswith("match")]) == 6
    for name in ("@0.3", "@0.9", "mean of .3 to .7", "6 to 10 s", "nothing found", "nothing there"):
        assert name in text


def test_numbers_of_the_tables(html):
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', html)
    cells = {}
    for name, rest in rows:
        cells.setdefault(name, []).append(re.findall(r"<td[^>]*>(.*?)</td>", rest))
    # instances, found, wrong, precision, recall, F1, threshold
    assert cells["all classes"][0][:3] == ["120", "96", "12"]
    assert cells["all classes"][0][4].startswith("80 [")
    assert cells["serve"][0][:3] == ["48", "36", "12"] and cells["serve"][0][-1] == "0.40"
    # confusion: columns let, rally, serve, nothing found
    assert cells["serve"][1] == ["", "", "36", "12"]
    assert cells["nothing there"] == [["", "", "12", ""]]
    # found; start: median, 90 %, bias; end
    assert cells["all classes"][1] == ["96", "0.50", "0.50", "+0.50", "0.00", "0.00", "+0.00"]


def test_nothing_is_loaded_from_anywhere(html):
    page = Page(html)
    assert {"link", "script", "iframe", "object"}.isdisjoint(tag for tag, _ in page.tags)
    assert "http://" not in html and "https://" not in html and "@import" not in html
    assert all(a[n].startswith(("#", "data:")) for _, a in page.tags for n in ("src", "href") if n in a)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_light_and_dark_and_small(html):
    assert "prefers-color-scheme: dark" in html and "max-width: 600px" in html and 'name="viewport"' in html


def test_labels_and_names_are_text(tmp_path):
    truth, found = tennis(("<b>", "[walk]", NASTY), 3)
    truth, found = ({f"{name}<i>": s for name, s in part.items()} for part in (truth, found))
    path = write_report(
        tmp_path / "p.html", evaluation(truth, found), title=NASTY, notes=[NASTY], next_steps=[NASTY], intervals=False
    )
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert "<script" not in html and "<i>" not in html
    assert re.findall(r"<b>(?!Table|Figure)", html) == []
    assert {"<b>", "[walk]", NASTY} <= set(page.texts("th")) and "<b>" in page.texts("code")
    assert any("match0<i>" in caption for caption in page.texts("figcaption"))


@pytest.mark.parametrize(
    "found", [{}, {"match0": Segments([500], [501], ["other"])}], ids=["nothing", "never annotated"]
)
def test_a_detector_that_finds_nothing(tmp_path, found):
    path = write_report(tmp_path / "p.html", evaluation(tennis(recordings=2)[0], found))
    text = words(Page(path.read_text(encoding="utf-8")))
    assert "Finds none of the 20 instances" in text and "Where most goes wrong" in text and "nan" not in text


def test_a_perfect_detector_of_one_class_in_one_recording(tmp_path):
    truth = {"v": Segments([0, 20], [10, 30], ["serve"] * 2)}
    text = words(Page(write_report(tmp_path / "p.html", evaluation(truth, truth)).read_text(encoding="utf-8")))
    assert "Finds all 2 serve , and nothing that is not there." in text
    assert "Where most goes wrong" not in text and "One recording does not tell" in text


def test_many_classes(tmp_path):
    labels = [f"class {i:02d}" for i in range(60)]
    truth, found = tennis(labels, 4)
    truth["all"] = Segments(10.0 * np.arange(60), 10.0 * np.arange(60) + 5, labels)
    html = write_report(tmp_path / "p.html", evaluation(truth, found), intervals=False).read_text(encoding="utf-8")
    text = words(Page(html))
    assert "The 25 classes that are confused most." in text and "The 40 classes of lowest F1." in text
    assert "The 11 classes with the most instances." in text


def test_notes_on_how_it_was_scored(tmp_path):
    truth, found = tennis(recordings=2)
    scored = evaluation(truth, found, protocol="th14", ambiguous={}, oracle=True, skipped=("x", "y"))
    text = words(Page(write_report(tmp_path / "p.html", scored).read_text(encoding="utf-8")))
    assert "mAP follows the protocol th14" in text and "an ablation, not a result" in text
    assert "Left out: 2 recordings without features." in text and "average mAP would be" not in text


def test_the_same_twice(tmp_path):
    pages = [write_report(tmp_path / f"{i}.html", evaluation(*tennis(recordings=2))).read_bytes() for i in range(2)]
    assert pages[0] == pages[1]


# Its parts


def test_a_part_of_a_recording_in_words():
    starts = 100.0 * np.arange(40)
    truth = {"v": Segments(starts, starts + 10, ["a"] * 40)}
    [worst] = worst_stretches(analyse(truth, {"v": truth["v"][1:]}, 0.5), length=1000.0)
    assert case_words(worst) == "v, 0:00 to 16:17 min: of 10 instances 9 found, 1 missed."
    alone = worst_stretches(analyse({"u": truth["v"], "v": Segments.empty()}, {"v": truth["v"][:1]}, 0.5))
    assert "v: nothing is annotated; of 1 detection 1 wrong (1 background)." in [case_words(s) for s in alone]


def test_what_is_wrong_is_underlined():
    truth = Segments([10, 30], [20, 40], ["a", "b"])
    figure = plot_timeline(truth, {"found": truth[:1]}, 50.0, start=5.0, marked={"truth": [False, True]})
    (axes,) = figure.axes
    lines = [c for c in axes.collections if to_hex(c.get_color()[0]) == MARK]
    assert [line.get_segments()[0][:, 0].tolist() for line in lines] == [[30, 40]]
    assert axes.get_xlim() == (5, 50)


def test_bars_of_kinds_have_the_length_of_their_shares():
    counts = {"all classes": {"found": 3, "missed": 1}, "none": {"found": 0, "missed": 0}}
    right = {"all classes": {"correct": 1, "background": 1}, "none": {"correct": 0, "background": 0}}
    figure = plot_error_kinds(counts, right, ("instances", "detections"))
    widths = [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
    assert widths == [[0.75, 0.25], [0.5, 0.5]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["3", "1", "none"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["found / correct", "missed / background"]


def test_curves_show_every_threshold():
    truth = {"v": Segments([0, 20], [10, 30], ["a", "a"])}
    curve = threshold_curve(truth, {"v": Segments([0, 50], [10, 60], ["a", "a"], [0.8, 0.3])})
    (axes,) = plot_threshold_curves({"a": curve}, {"a": 0.5}).axes
    precision, recall, f1, chosen = axes.lines
    assert precision.get_xydata().tolist() == [[0.8, 1.0], [0.3, 0.5]] and recall.get_ydata().tolist() == [0.5, 0.5]
    assert f1.get_ydata() == pytest.approx([2 / 3, 0.5]) and chosen.get_xdata() == [0.5, 0.5]


def test_a_matrix_shades_and_escapes():
    html = Report("t").matrix("corner", ["<b>", "none"], ["<b>", "x"], [[1, 1], [0, 0]], caption="c").html()
    assert '<td class="right" style="--share:0.39">1</td><td class="wrong" style="--share:0.39">1</td>' in html
    assert '<th scope="row">&lt;b&gt;</th>' in html and "<td></td><td></td>" in html
    Page(html)
