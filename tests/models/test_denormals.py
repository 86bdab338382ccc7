"""Training must not change how the rest of the user's process calculates."""

import numpy as np

from temporalzoom.models.runtime import denormals_as_zero


def smallest_product() -> float:
    return float(np.array([1e-310]).prod() * 0.5)


def test_denormals_are_flushed_inside_and_back_outside():
    assert smallest_product() > 0
    with denormals_as_zero():
        assert smallest_product() == 0
        with denormals_as_zero():
            pass
        assert smallest_product() == 0
    assert smallest_product() > 0
