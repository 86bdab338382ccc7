"""S-CNN's published detections on THUMOS14 must give the values that its authors and the official toolkits give."""

import json

import numpy as np
import pytest

from temporalzoom.metrics import evaluate_detections
from temporalzoom.segments import Segments


@pytest.fixture(scope="module")
def scnn(shared_data):
    folder = shared_data / "thumos14" / "scnn"
    database = json.loads((folder / "thumos14_test_gt.json").read_text())["database"]
    truth = {video: Segments.from_records(entry["annotations"]) for video, entry in database.items()}
    ambiguous = {
        video: Segments.from_records({"label": "Ambiguous", "segment": span} for span in entry["ambiguous"])
        for video, entry in database.items()
    }
    return folder, truth, ambiguous, json.loads((folder / "expected.json").read_text())


def read_predictions(folder, name):
    results = json.loads((folder / f"{name}.json").read_text())["results"]
    return {video: Segments.from_records(records) for video, records in results.items()}


def test_both_protocols_meet_the_official_values(scnn):
    for name in [f"scnn_iou0.{digit}" for digit in (1, 2, 3, 4, 5)]:
        folder, truth, ambiguous, expected = scnn
        expected, predictions = expected[name], read_predictions(folder, name)
        assert sum(map(len, predictions.values())) == expected["n_det"]

        th14 = evaluate_detections(truth, predictions, [expected["tiou"]], "th14", ambiguous)
        assert th14.average == pytest.approx(expected["published_or_stored_mAP"], abs=1e-4)
        assert dict(zip(th14.classes, th14.ap[0], strict=True)) == pytest.approx(expected["TH14_reimpl_AP"], abs=1e-4)

        # The ActivityNet toolkit sorts equal scores arbitrarily, and S-CNN has many of them.
        anet = evaluate_detections(truth, predictions, [expected["tiou"]], "anet")
        assert anet.average == pytest.approx(expected["official_anet_code_mAP"], abs=0.007)


def test_map_falls_with_the_threshold_on_real_detections(scnn):
    for protocol in ["anet", "th14"]:
        folder, truth, ambiguous, _ = scnn
        result = evaluate_detections(
            truth, read_predictions(folder, "scnn_iou0.5"), np.linspace(0.3, 0.7, 5), protocol, ambiguous
        )
        assert list(result.mAP) == [0.3, 0.4, 0.5, 0.6, 0.7]
        assert (np.diff(list(result.mAP.values())) < 0).all()
