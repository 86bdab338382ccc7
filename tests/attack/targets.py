"""What is attacked: every reader, each with the wrong inputs made for it and with what makes its result right."""

from __future__ import annotations

import json

import specimens
from fuzzing import Target
from readings import (
    localize_with,
    read_a_description,
    read_a_signal,
    read_a_video,
    read_an_annotation_file,
    read_an_array,
    read_configuration,
    read_label_studio_file,
    read_overrides,
    read_own_annotations,
    read_prediction_file,
)
from wrong_arrays import archive_file, edf_file, hdf5_file, npy_header, parquet_file, tensor_file
from wrong_models import (
    checkpoint_folder,
    description,
    members_folder,
    onnx_file,
    onnx_properties,
    override,
    sidecar_file,
    sweep_file,
    video_file,
    yaml_file,
)
from wrong_texts import arrays, byte_file, json_file, of_suffix, signal_tables, spreadsheet_file, tables, text_file

from temporalzoom.inference.fusion import read_video_scores
from temporalzoom.inference.onnx_network import from_properties
from temporalzoom.runs.members import read_members
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.workflows.segment_files import read_segment_files
from temporalzoom.workflows.sweep_file import read_sweep

SCORES = ({"a": {"run": 0.5}}, {"results": {"a": [1]}, "class": ["x"]})
TARGETS = (
    Target("annotations: JSON", json_file("a.json", (specimens.ANNOTATIONS, specimens.BSN)), read_own_annotations, 2),
    Target("predictions: JSON", json_file("p.json", (specimens.PREDICTIONS,)), read_prediction_file),
    Target("scores of recordings: JSON", json_file("s.json", SCORES), read_video_scores, 0.5),
    Target("import: tables", text_file(tables), read_an_annotation_file, 3),
    Target("import: Excel", spreadsheet_file, read_an_annotation_file, 0.3),
    Target("import: subtitles", text_file(of_suffix(".vtt", ".srt")), read_an_annotation_file),
    Target("import: ELAN", text_file(of_suffix(".eaf")), read_an_annotation_file),
    Target("import: RTTM, Audacity", text_file(of_suffix(".rttm", ".audacity.txt")), read_an_annotation_file),
    Target("import: Label Studio", lambda d, f: json_file("a.labelstudio.json", (
        json.loads(specimens.annotation_files()[".labelstudio.json"]),))(d, f), read_label_studio_file),
    Target("import: VIA", lambda d, f: json_file("a.via.json", (
        json.loads(specimens.annotation_files()[".via.json"]),))(d, f), read_an_annotation_file),
    Target("segments of any file", text_file(lambda: tables() + of_suffix(".vtt", ".eaf", ".via.json")()),
           lambda path: read_segment_files([path], fps=10.0), 0.5),
    Target("features: .npy, .npz headers", npy_header, read_an_array),
    Target("features: .npy, .npz bytes", byte_file(arrays(".npy", ".npz")), read_an_array),
    Target("signals: .npz", archive_file, read_a_signal),
    Target("signals: .npz bytes", byte_file(arrays(".npz")), read_a_signal, 0.5),
    Target("features: .pt", tensor_file, read_an_array),
    Target("features: .h5 bytes", byte_file(arrays("x.h5")), read_an_array, 0.5),
    Target("signals: .h5, SLEAP, DeepLabCut", hdf5_file, read_a_signal),
    Target("signals: .h5 bytes", byte_file(arrays(".h5")), read_a_signal, 0.5),
    Target("signals: tables, DeepLabCut .csv", text_file(signal_tables), read_a_signal, 2),
    Target("signals: Parquet", parquet_file, read_a_signal),
    Target("signals: EDF", edf_file, read_a_signal, 0.5),
    Target("descriptions beside features", sidecar_file, read_sidecar),
    Target("configuration: YAML", yaml_file, read_configuration, 0.5),
    Target("configuration: overrides", override, read_overrides, 0.5),
    Target("sweeps: YAML", sweep_file, read_sweep, 0.15),
    Target("checkpoints: descriptions", description, read_a_description),
    Target("checkpoints: folders", checkpoint_folder, localize_with, 0.3),
    Target("members of a run", members_folder, read_members, 0.3),
    Target("ONNX: descriptions", onnx_properties, lambda texts: from_properties(texts, "x.onnx")),
    Target("ONNX: files", onnx_file, localize_with, 0.1),
    Target("videos", video_file, read_a_video, 0.3),
)  # fmt: skip
