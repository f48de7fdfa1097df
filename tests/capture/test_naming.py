"""Inputs are called as the user calls them."""

from __future__ import annotations

import pytest

from compiler.capture.autograd.naming import user_name


@pytest.mark.parametrize(
    ("placeholder", "name"),
    [
        ("l_x_", "x"),
        ("L_x_", "x"),
        ("l_self_modules_fc_parameters_weight_", "fc_weight"),
        ("l_self_modules_block_modules_norm_buffers_running_mean_", "block_norm_running_mean"),
        ("g_model_modules_0_parameters_bias_", "model_0_bias"),
        ("l_w_gate_", "w_gate"),
        ("l_", "l"),
    ],
)
def test_user_name(placeholder: str, name: str) -> None:
    assert user_name(placeholder) == name
