"""ONNX files: what they say about themselves, running one in the place of PyTorch, writing one that was checked."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.json_tree import parse_json
from temporalzoom.metrics.latency import LatencyRatio, latency_ratio, measure_latency, threads
from temporalzoom.models import Depth, Outputs
from temporalzoom.models.level_heads import all_points
from temporalzoom.models.runtime import denormals_as_zero, keep_freed_memory
from temporalzoom.runs.description import ExportedGraph, ModelDescription

OPSET = 17  # the oldest operators with a layer norm in one piece
TOLERANCE = 1e-4
PREFIX = "temporalzoom."
RAW_NAMES = ("logits", "offsets", "offset_log_variance", "distances", "distance_log_variance")
POINT_NAMES = RAW_NAMES[:3]  # one row per point: more than positions, if there are coarser levels
DEPTH_NAMES = ("depth_logits", "tau", "importance", "log_variance", "kept", "active")


def to_properties(description: ModelDescription) -> dict[str, str]:
    """Key and value of each entry in a file's metadata, the values in JSON."""
    return {PREFIX + key: json.dumps(value) for key, value in description.to_json().items()}


def from_properties(properties: Mapping[str, str], source: str) -> ModelDescription:
    """The inverse. source: the file's name, for errors."""
    ours = {key.removeprefix(PREFIX): text for key, text in properties.items() if key.startswith(PREFIX)}
    if not ours:
        raise InputError(f"{source}: not written by 'tzoom export': its metadata names no classes and no time grid")
    try:
        values = {key: parse_json(text) for key, text in ours.items()}
    except ValueError as error:
        raise InputError(f"{source}: not a description of a model ({error})") from None
    return ModelDescription.from_json(values, source, again="export")


class OnnxNetwork(nn.Module):
    """Called like the model that was exported, on CPU, one sequence at a time.

    workers: threads of onnxruntime; default: as many as PyTorch has when the file is loaded.
    """

    def __init__(self, path: str | Path, workers: int | None = None) -> None:
        super().__init__()
        self.session = _open(Path(path), workers or torch.get_num_threads())
        self.description = from_properties(self.session.get_modelmeta().custom_metadata_map, source=str(path))
        self.graph = self.description.graph or ExportedGraph()
        self.names = [output.name for output in self.session.get_outputs()]
        missing = {"logits", "offsets"} - set(self.names)
        if missing:
            raise InputError(f"{path}: its graph has no output {min(missing)!r}")

    @property
    def receptive_field(self) -> int | None:
        return self.graph.receptive_field

    def forward(self, features: Tensor, mask: Tensor) -> Outputs:
        """features: (1, T, F), mask: (1, T), True everywhere -> Outputs."""
        longest = self.graph.longest
        if len(features) != 1 or not bool(mask.all()):
            raise ValueError(f"an exported network takes one sequence without padding, got {tuple(features.shape)}")
        if longest is not None and features.shape[1] > longest:
            raise InputError(f"inference.max_length: the exported network is right for up to {longest} positions")
        try:
            arrays = self.session.run(self.names, {"features": features.detach().float().contiguous().numpy()})
        except Exception as error:  # onnxruntime's own errors share no narrower base
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"the exported network cannot be run: its file is damaged ({reason})") from None
        found = {name: torch.from_numpy(array) for name, array in zip(self.names, arrays, strict=True)}
        outputs = Outputs(**{name: found[name] for name in RAW_NAMES if name in found})  # type: ignore[arg-type]
        if set(DEPTH_NAMES) <= set(found):
            columns = [found[name] for name in (*DEPTH_NAMES, "active")]  # what is active is what was tried
            outputs.depth = Depth(*columns)  # type: ignore[arg-type]
        if self.graph.levels > 1:
            outputs.points = all_points(mask, self.graph.levels)
        return outputs


def _open(path: Path, workers: int) -> Any:
    """An onnxruntime session."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    # As its packages come, onnxruntime reports each process that imports it to its makers; recordings may be private.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(f'{path}: running it needs onnxruntime: pip install "temporalzoom[onnx]"') from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = workers
    options.log_severity_level = 4  # what goes wrong is raised; warnings about the graph concern nobody who runs it
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # onnxruntime's own errors share no narrower base
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: not a readable ONNX file ({reason})") from None


@dataclass(frozen=True)
class Agreement:
    """How two networks compare on random features.

    difference: the largest over all outputs, of values above 1 relative to them; time: seconds of the second relative
    to the first, on one thread, with a 95 % interval; seconds: medians of both; active: share of positions that went
    deep, None without depth.
    """

    lengths: tuple[int, ...]
    difference: float
    time: LatencyRatio
    seconds: tuple[float, float]
    active: float | None


@torch.inference_mode()
@denormals_as_zero()
def compare_networks(
    model: nn.Module, exported: nn.Module, make_features: Callable[[int], Tensor], lengths: Sequence[int], repeats: int
) -> Agreement:
    """`exported` against `model`, timed in turn at the last of the lengths. make_features: T -> (1, T, F)."""
    keep_freed_memory()
    difference = 0.0
    for length in lengths:
        features = make_features(length)
        mask = torch.ones(features.shape[:2], dtype=torch.bool)
        expected = model(features, mask)
        pairs = zip(_all_tensors(expected), _all_tensors(exported(features, mask)), strict=True)
        for (name, wanted), (other, found) in pairs:
            if name != other or wanted.shape != found.shape:
                raise ValueError(f"{name} {tuple(wanted.shape)} became {other} {tuple(found.shape)}")
            apart = (found.double() - wanted.double()).abs() / wanted.double().abs().clamp(min=1)
            # NaN compares as smaller than anything: it must count as infinitely far.
            difference = max(difference, float(apart.nan_to_num(nan=float("inf")).max()))
    with threads(1):
        seconds = measure_latency(
            {"model": lambda: model(features, mask), "exported": lambda: exported(features, mask)}, repeats
        )
    active = None if expected.depth is None else float(expected.depth.active.float().mean())
    ratio = latency_ratio(seconds["exported"], seconds["model"])
    medians = (seconds["model"].median, seconds["exported"].median)
    return Agreement(tuple(lengths), difference, ratio, medians, active)


def _all_tensors(outputs: Outputs) -> list[tuple[str, Tensor]]:
    depth = {} if outputs.depth is None else {f"depth.{name}": x for name, x in vars(outputs.depth).items()}
    return [(name, x) for name, x in (vars(outputs) | depth).items() if isinstance(x, Tensor)]


def save_network(
    model: nn.Module,
    form: nn.Module,
    names: Sequence[str],
    described: ModelDescription,
    out: str | Path,
    make_features: Callable[[int], Tensor],
    lengths: Sequence[int],
    repeats: int,
) -> Agreement:
    """Write `form`, features (1, T, F) -> tensors called `names`, and compare the file with `model` at `lengths`.

    make_features: T -> (1, T, F). If the two differ by more than TOLERANCE, no file is left.
    """
    if Path(out).suffix != ".onnx":
        raise InputError(f"{out}: the name must end in .onnx: by that the file is known when it is loaded")
    with replacing(out, "wb") as file:
        file.write(_graph(form, make_features(70), names, described))
        file.flush()
        agreement = compare_networks(model, OnnxNetwork(file.name, workers=1), make_features, lengths, repeats)
        if not agreement.difference <= TOLERANCE:
            raise InputError(
                f"{out}: not written: it would differ from {described.model} by {agreement.difference:.1e}, "
                f"more than {TOLERANCE:g}"
            )
    return agreement


def _graph(form: nn.Module, example: Tensor, names: Sequence[str], described: ModelDescription) -> bytes:
    try:
        import onnx
    except ImportError as error:
        raise InputError('exporting needs onnx and onnxruntime: pip install "temporalzoom[onnx]"') from error
    written = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        # Of sizes that are constants: they are. Of the exporter's age: the newer one takes twenty times as long, and
        # fixes the length of `tzn`.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            form.eval(),  # the exporter brings back the mode it found, in all of its modules
            (example,),
            written,  # type: ignore[arg-type]
            dynamo=False,
            opset_version=OPSET,
            input_names=["features"],
            output_names=list(names),
            dynamic_axes={name: {1: "N" if name in POINT_NAMES else "T"} for name in ("features", *names)},
        )
    graph = onnx.load_model_from_string(written.getvalue())
    onnx.helper.set_model_props(graph, to_properties(described))
    return graph.SerializeToString()
