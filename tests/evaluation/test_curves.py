"""Tables as curves: what was measured here, and the paper's numbers on axes of their own."""

from __future__ import annotations

import dataclasses

from s2rm_data.evaluation.curves import draw_tables
from s2rm_data.evaluation.tables import Cell, Row, Table


def table(name: str, *rows: Row) -> Table:
    return Table(name=name, title=name, caption="", corner="", columns=("20%", "100%"), rows=rows)


UNTRAINED = Row(
    label="S2GRU",
    model="S2GRU",
    kind="model",
    colour="#d55e00",
    cells=(Cell(values=(-0.001,), paper=-0.02), Cell(values=(-0.002,), paper=-0.01)),
)
NOTHING = Row(label="nothing there", kind="reference", cells=(Cell(values=(-0.001,)), Cell(values=(-0.001,))))


def test_the_papers_numbers_do_not_share_an_axis_with_what_was_measured_here() -> None:
    figure = draw_tables([table("NMSE", UNTRAINED, NOTHING)], xlabel="active agents", titles=["NMSE"])
    here, paper = figure.axes
    assert (here.get_title(), paper.get_title()) == ("NMSE", "NMSE: the paper")
    assert here.get_ylim()[0] > -0.01 and paper.get_ylim()[1] < -0.005
    assert [line.get_label() for line in here.lines] == ["S2GRU", "nothing there"]
    assert [line.get_label() for line in paper.lines] == ["paper: S2GRU"]
    assert [text.get_text() for text in figure.legends[0].texts] == ["S2GRU", "nothing there", "paper: S2GRU"]


def test_two_configs_of_a_model_share_the_papers_line() -> None:
    rows = [dataclasses.replace(UNTRAINED, label=f"S2GRU ({name})") for name in ("smoke", "laptop")]
    here, paper = draw_tables([table("NMSE", *rows)], xlabel="active agents", titles=["NMSE"]).axes
    assert [line.get_label() for line in here.lines] == ["S2GRU (smoke)", "S2GRU (laptop)"]
    assert [line.get_label() for line in paper.lines] == ["paper: S2GRU"]


def test_a_table_without_the_papers_numbers_has_one_panel() -> None:
    figure = draw_tables([table("F1", NOTHING), table("NMSE", UNTRAINED)], xlabel="group", titles=["F1", "NMSE"])
    assert [axes.get_title() for axes in figure.axes] == ["F1", "NMSE", "NMSE: the paper"]


def test_a_reference_at_zero_does_not_press_the_models_together() -> None:
    models = [
        Row(label=name, kind="model", colour="#d55e00", cells=(Cell(values=(low,)), Cell(values=(low + 0.02,))))
        for name, low in (("A", 0.70), ("B", 0.71))
    ]
    copy = Row(label="copy", kind="reference", cells=(Cell(values=(0.68,)), Cell(values=(0.69,))))
    nothing = Row(label="nothing", kind="reference", cells=(Cell(values=(0.0,)), Cell(values=(0.0,))))
    (axes,) = draw_tables([table("F1", *models, copy, nothing)], xlabel="balls", titles=["F1"]).axes
    low, high = axes.get_ylim()
    assert 0.6 < low < 0.68 and 0.73 < high < 0.8
    assert [text.get_text() for text in axes.texts] == ["1 of 2 references off this axis"]


def test_the_papers_panel_is_below_that_of_the_same_score() -> None:
    tables = [table(name, UNTRAINED) for name in ("a", "b")] + [table("c", NOTHING)]
    axes = draw_tables(tables, xlabel="agents", titles=["a", "b", "c"], columns=2).axes
    assert [one.get_title() for one in axes] == ["a", "b", "a: the paper", "b: the paper", "c"]
