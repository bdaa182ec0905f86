"""Switch programs of s-PERC* and Soze: they fit RMT, and have the state and the packets of the Rust schemes."""

from __future__ import annotations

import pytest
from subak.pipeline import fit, program_file, switch_file
from subak.pipeline.p4 import soze, sperc_star
from subak.pipeline.p4.compile import Machine
from subak.pipeline.p4.lower import read


@pytest.mark.parametrize(("name", "stages"), [("s-perc-star", 12), ("soze", 2)])
def test_it_fits_rmt(name: str, stages: int) -> None:
    answer = fit(program_file.load(name), switch_file.load("rmt"), "stages", workers=2)
    assert (answer.status, answer.value) == ("optimal", stages)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_s_perc_star_agrees_in_every_field(seed: int) -> None:
    found = sperc_star.compare(40_000, seed)
    assert found["first"] is None
    assert set(found["differ"].values()) == {0}
    assert found["wrong_sums"] == 0
    for counted in ("leaves", "rounds", "losses", "joins", "elsewhere", "ignored", "demands", "longer", "shorter"):
        assert found["counted"][counted] > 10, counted


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("sum_e_shadow.write(meta.link, 0)", "sum_e_shadow.write(meta.link, sum)"),
        ("num_b.write(meta.link, count);\n        sum_e_shadow", "sum_e_shadow"),
        ("hdr.l2.number = meta.number", "hdr.l2.number = meta.old_number"),
        ("meta.e1 = hdr.perc.own", "meta.e1 = NO_LIMIT"),
        ("of_round = of_round |-| 1", "of_round = of_round - 0"),
        ("product[47:16]", "product[48:17]"),
        ("if (longest < exponent)", "if (longest <= exponent)"),
        ("from = standard.egress_global_timestamp;", "from = from + 0;"),
        ("(past[47:47] == 0 ||", "((past > 5000 && past[47:47] == 0) ||"),
        ("meta.need = (meta.longest +", "meta.need = (meta.longest + 1000 +"),
    ],
)
def test_a_wrong_s_perc_star_differs(right: str, wrong: str) -> None:
    source = (program_file.FOLDER / "s-perc-star.p4").read_text()
    assert right in source
    made = sperc_star.setup(1)
    honest = sperc_star.Switches(sperc_star.machine(), made)
    other = sperc_star.Switches(Machine(read(source.replace(right, wrong, 1).encode(), "wrong.p4")), made)
    events = sperc_star.events(made, 20_000, 2, calm=0)
    assert any(honest.step(event) != other.step(event) for event in events)


def test_soze_agrees_in_every_header() -> None:
    found = soze.compare(3000, 1)
    assert found["first"] is None
    assert found["different"] == 0
    for counted in ("headers", "filtered", "acks", "raised", "largest"):
        assert found["counted"][counted] > 1000, counted


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("deq_timedelta + half)", "deq_timedelta)"),
        ("? told : hdr.soze.delay", "? hdr.soze.delay : told"),
        ("(delay > 65535) ? MOST :", "(delay > 131071) ? MOST :"),
    ],
)
def test_a_wrong_soze_differs(right: str, wrong: str) -> None:
    source = (program_file.FOLDER / "soze.p4").read_text()
    assert right in source
    honest = soze.Links(soze.machine(), 4)
    other = soze.Links(Machine(read(source.replace(right, wrong, 1).encode(), "wrong.p4")), 4)
    crossings = soze.crossings(500, 1, 100e3)
    assert any(honest.step(c.wait_ns, 100, c.is_data) != other.step(c.wait_ns, 100, c.is_data) for c in crossings)
