"""The attacks of `bench.service attacks`, which a worker with the real compiler runs: each must be a program."""

from __future__ import annotations

import pytest

from bench.service.attacks import ATTACKS, Attack, source_of


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.run.__name__)
def test_an_attack_is_a_program(attack: Attack) -> None:
    source = source_of(attack, dict(attack.given))
    compile(source, "<attack>", "exec")
    assert source.endswith(f"{attack.run.__name__}(**GIVEN)\n")
