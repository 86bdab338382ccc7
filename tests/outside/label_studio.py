"""`make label-studio`: do the tasks that we write pass Label Studio's own validation?

Its package wants other versions than this project pins, so it has an environment of its own. `write FILE` runs in the
project's environment, `check FILE` in the other one.
"""

import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "annotation-formats.md"
LABELS = ("jump", "run & fall")


def write(path: Path) -> None:
    import numpy as np

    from temporalzoom.formats.label_studio import label_studio_tasks
    from temporalzoom.segments import Segments

    found = Segments(np.array([0.5, 3.0]), np.array([2.0, 4.25]), np.array(LABELS), np.array([0.9, 0.4]))
    tasks = {fps: label_studio_tasks({"match7": found, "empty": Segments.empty()}, fps=fps) for fps in (None, 25.0)}
    path.write_text(json.dumps({"signal": tasks[None], "video": tasks[25.0]}), encoding="utf-8")


def check(path: Path) -> None:
    from label_studio_sdk.label_interface import LabelInterface

    for kind, tasks in json.loads(path.read_text(encoding="utf-8")).items():
        interface = LabelInterface(configuration(kind))
        interface.validate()
        for task in tasks:
            assert kind in task["data"], task
            for prediction in task["predictions"]:
                errors = interface.validate_prediction(prediction, return_errors=True)
                assert not errors, (kind, errors)
        # The validator notices what is wrong: a label that the configuration does not have.
        wrong = json.loads(json.dumps(tasks[0]["predictions"][0]).replace(LABELS[0], "unknown"))
        assert interface.validate_prediction(wrong, return_errors=True)
    print("Label Studio accepts the tasks of videos and of time series")


def configuration(kind: str) -> str:
    """The labeling configuration that the docs give, with the labels of this test."""
    text = PAGE.read_text(encoding="utf-8")
    object_tag = {"signal": "<TimeSeries ", "video": "<Video "}[kind]
    first = text.rindex("<View>", 0, text.index(object_tag))
    view = text[first : text.index("</View>", first) + len("</View>")]
    wanted = "".join(f'<Label value="{label.replace("&", "&amp;")}"/>' for label in LABELS)
    return re.sub(r"(<Label [^>]*/>)+", wanted, view)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]))
