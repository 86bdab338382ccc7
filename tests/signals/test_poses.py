"""Pose files of DeepLabCut and SLEAP, written here in their published layouts."""

import pickle

import numpy as np
import pytest

from temporalzoom.errors import InputError
from temporalzoom.signals.channel_kinds import channel_kinds
from temporalzoom.signals.poses import keypoint_pattern
from temporalzoom.signals.signal_files import read_signal

N, PARTS = 30, ("nose", "tail base")
COORDS = ("x", "y", "likelihood")
SINGLE = [("net", part, coordinate) for part in PARTS for coordinate in COORDS]
MULTI = [("net", animal, *rest) for animal in ("rat 1", "rat 2") for _, *rest in SINGLE]
RANDOM = np.random.default_rng(1)


def values(width: int) -> np.ndarray:
    array = RANDOM.uniform(0, 500, size=(N, width)).round(3)
    array[:, 2::3] = RANDOM.uniform(0, 1, size=(N, width // 3)).round(3)
    array[7, :2] = np.nan
    return array


def write_csv(path, columns, array, frames):
    header = (
        ("scorer", "bodyparts", "coords") if len(columns[0]) == 3 else ("scorer", "individuals", "bodyparts", "coords")
    )
    lines = [",".join([name, *(column[level] for column in columns)]) for level, name in enumerate(header)]
    lines += [
        ",".join([str(frame), *("" if np.isnan(v) else repr(float(v)) for v in row)])
        for frame, row in zip(frames, array, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def write_table(path, columns, array, frames):
    """As `DataFrame.to_hdf(format="table")`."""
    h5py = pytest.importorskip("h5py")
    stored = np.zeros(len(array), [("index", "<i8"), ("values_block_0", "<f8", (array.shape[1],))])
    stored["index"], stored["values_block_0"] = frames, array
    with h5py.File(path, "w") as file:
        group = file.create_group("df_with_missing")
        group.attrs["pandas_type"] = np.bytes_(b"frame_table")
        group["table"] = stored
        group["table"].attrs["values_block_0_kind"] = np.bytes_(pickle.dumps(columns, 0))
        group["_i_table/index/sorted"] = np.zeros((0, 5))


def write_fixed(path, columns, array, frames):
    """As `DataFrame.to_hdf(format="fixed")`: levels sorted, and a code per column."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        group = file.create_group("tracks_of_net")
        group.attrs.update({"pandas_type": np.bytes_(b"frame"), "nblocks": 1, "block0_items_nlevels": len(columns[0])})
        group.attrs["block0_items_variety"] = np.bytes_(b"multi")
        for level, names in enumerate(zip(*columns, strict=True)):
            levels = sorted(set(names))
            group[f"block0_items_level{level}"] = np.array(levels, "S")
            group[f"block0_items_label{level}"] = np.array([levels.index(name) for name in names], np.int8)
        group["axis1"] = np.asarray(frames)
        group["block0_values"] = array


WRITERS = {"csv": write_csv, "table.h5": write_table, "fixed.h5": write_fixed}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("columns", [SINGLE, MULTI], ids=["single", "multi"])
def test_deeplabcut(tmp_path, suffix, columns):
    path, array = tmp_path / f"video1DLC_net.{suffix}", values(len(columns))
    WRITERS[suffix](path, columns, array, range(N))
    signal = read_signal(path)
    np.testing.assert_allclose(signal.values, array, rtol=1e-6)
    assert signal.keypoints == "xyc" and signal.fps is None and set(channel_kinds(signal)) == {"pose"}
    assert signal.channels == tuple(".".join(column[1:]) for column in columns)
    assert signal.notes[0].startswith(f"DeepLabCut: {len(columns) // 3} keypoints")
    assert "fps" in signal.notes[-1] and read_signal(path, fps=25.0).duration == N / 25
    assert read_signal(path, columns=[signal.channels[4], signal.channels[0]]).values.shape == (N, 2)


@pytest.mark.parametrize("suffix", WRITERS)
def test_frames_that_deeplabcut_skips_are_unknown(tmp_path, suffix):
    path, array = tmp_path / f"v.{suffix}", values(6)
    WRITERS[suffix](path, SINGLE, array, [100 + k + (k >= 10) * 2 for k in range(N)])
    signal = read_signal(path)
    assert len(signal.values) == N + 2 and np.isnan(signal.values[10:12]).all()
    np.testing.assert_allclose(signal.values[12:], array[10:], rtol=1e-6)
    WRITERS[suffix](path, SINGLE, array, [*range(N - 1), 3])
    with pytest.raises(InputError, match="row 30: frame numbers do not rise"):
        read_signal(path)


def test_annotated_pictures_are_no_video(tmp_path):
    path = tmp_path / "CollectedData.csv"
    write_csv(path, SINGLE, values(6), [f"labeled-data/v/img{k}.png" for k in range(N)])
    with pytest.raises(InputError, match="annotated pictures, not a tracked video"):
        read_signal(path)


def test_nothing_in_a_file_is_executed(tmp_path):
    """Names of columns are a pickle; one that would call a function is refused."""
    h5py = pytest.importorskip("h5py")
    path, marker = tmp_path / "v.h5", tmp_path / "made"
    write_table(path, SINGLE, values(6), range(N))
    with h5py.File(path, "a") as file:
        attack = f"cos\nsystem\n(S'touch {marker}'\ntR.".encode()
        file["df_with_missing/table"].attrs["values_block_0_kind"] = np.bytes_(attack)
    with pytest.raises(InputError, match=r"names of its columns cannot be read \(os.system is no plain text\)"):
        read_signal(path)
    assert not marker.exists()


def test_a_layout_that_is_not_whole(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "v.h5"
    write_fixed(path, SINGLE, values(6), range(N))
    with h5py.File(path, "a") as file:
        del file["tracks_of_net/block0_values"]
    with pytest.raises(InputError, match=r"v\.h5: poses in it cannot be read, write them as \.csv instead"):
        read_signal(path)


def test_other_tables_of_pandas(tmp_path):
    path = tmp_path / "v.h5"
    write_table(path, [("a",), ("b",)], np.zeros((N, 2)), range(N))
    with pytest.raises(InputError, match=r"a table of pandas that is none of DeepLabCut; write it as \.csv"):
        read_signal(path)


@pytest.mark.parametrize("tracks", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_sleap(tmp_path, tracks, turned, scores):
    h5py = pytest.importorskip("h5py")
    path, nodes = tmp_path / "v.analysis.h5", ["head", "thorax", "leg é"]
    points = RANDOM.uniform(0, 500, size=(tracks, 2, 3, N))
    points[0, :, 1, 5] = np.nan
    certain = RANDOM.uniform(size=(tracks, 3, N))
    with h5py.File(path, "w") as file:
        file["tracks"] = points.T if turned else points
        file["node_names"] = np.array([node.encode() for node in nodes])
        file["track_names"] = np.array([f"fly{k}".encode() for k in range(tracks)])
        file["track_occupancy"] = np.ones((N, tracks), np.uint8)
        if scores:
            file["point_scores"] = certain.T if turned else certain
    signal = read_signal(path, fps=30.0)
    pattern = "xyc" if scores else "xy"
    assert signal.keypoints == pattern and signal.fps == 30 and signal.values.shape == (N, tracks * 3 * len(pattern))
    found = signal.values.reshape(N, tracks, 3, len(pattern))
    for track in range(tracks):
        for node in range(3):
            for axis in range(2):
                np.testing.assert_allclose(found[:, track, node, axis], points[track, axis, node], rtol=1e-6)
    if scores:
        np.testing.assert_allclose(found[..., 2], certain.transpose(2, 0, 1), rtol=1e-6)
    assert signal.channels[:2] == (("head.x", "head.y") if tracks == 1 else ("fly0.head.x", "fly0.head.y"))
    assert signal.channels[-1].endswith("leg é." + ("score" if scores else "y"))


def test_sleap_of_shapes_that_do_not_fit(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["tracks"], file["node_names"] = np.zeros((1, 2, 4, N)), np.array([b"a", b"b", b"c"])
    with pytest.raises(InputError, match="do not fit 3 nodes of SLEAP"):
        read_signal(tmp_path / "v.h5")


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        ("nose_x nose_y nose_likelihood left_ear_x left_ear_y left_ear_likelihood", "xyc"),
        ("lhx lhy lhz rhx rhy rhz hx hy hz", "xyz"),
        ("head.x head.y thorax.x thorax.y leg.x leg.y", "xy"),
        ("head.x head.y head.score", "xyc"),
        ("acc_x acc_y acc_z gyro_x gyro_y gyro_z mag_x mag_y mag_z", ""),
        ("ax ay az gx gy gz mx my mz", ""),
        ("back_x back_y back_z thigh_x thigh_y thigh_z", ""),  # two of something may be sensors
        ("nose_x tail_x nose_y tail_y ear_x ear_y", ""),  # not beside each other
        ("nose_x nose_y tail_x tail_y ear_x", ""),
        ("x y z", ""),
        ("a b c", ""),
    ],
)
def test_keypoints_by_their_names(names: str, pattern: str):
    assert keypoint_pattern(names.split()) == pattern


@pytest.mark.parametrize("layout", ["table", "fixed"])
def test_what_pandas_itself_writes(tmp_path, layout):
    """With PyTables, which is not among the pinned packages; the layouts above are copied from it."""
    pytest.importorskip("tables")
    pandas = pytest.importorskip("pandas")
    columns = pandas.MultiIndex.from_tuples(MULTI, names=["scorer", "individuals", "bodyparts", "coords"])
    array = values(len(MULTI))
    pandas.DataFrame(array, columns=columns).to_hdf(tmp_path / "v.h5", key="df_with_missing", format=layout, mode="w")
    signal = read_signal(tmp_path / "v.h5")
    np.testing.assert_allclose(signal.values, array, rtol=1e-6)
    assert signal.channels == tuple(".".join(column[1:]) for column in MULTI)
