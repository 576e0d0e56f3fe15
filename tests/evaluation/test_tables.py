from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from contexts import named_run
from scipy import stats

from s2rm_data.core.errors import UnknownNameError
from s2rm_data.evaluation.candidates import entries_of
from s2rm_data.evaluation.report import Section, page, standing
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Cell, Comparison, Reference, Table, Tables, compare, gains, shares

REFERENCES = {"copy_previous": "copy of the last frame", "always_off": "always off"}


def table_of(runs: list[Run], scores: dict[str, float], **fields) -> Table:
    """Two groups; every run scores 0.3 on the first and as given on the second, references 0.4 and 0.1."""
    references = {"copy_previous": {"f1": 0.4}, "always_off": {"f1": 0.1}}
    found = {
        "one": Comparison(runs={run.name: {"f1": 0.3} for run in runs}, references=references),
        "three": Comparison(runs={run.name: {"f1": scores[run.name]} for run in runs}, references=references),
    }
    columns = {name: comparison.column("f1") for name, comparison in found.items()}
    described = {"name": "w_one_step_f1", "title": "F1", "caption": "", "corner": "group", "world": "w", **fields}
    return Table(columns=tuple(columns), rows=compare(entries_of(runs), columns, REFERENCES), **described)


SEEDS = [named_run("lstm", "w", 0), named_run("lstm", "w", 1), named_run("s2gru", "w"), named_run("tto", "w")]
SCORES = {"lstm-0": 0.5, "lstm-1": 0.6, "s2gru-0": 0.2, "tto-0": 0.9}


def test_intervals_are_student_s() -> None:
    values = (0.51, 0.58, 0.55)
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    cell = Cell(values=values)
    assert cell.mean == pytest.approx(np.mean(values))
    assert cell.half_width == pytest.approx((high - low) / 2)
    assert Cell(values=(0.1, 0.3)).half_width == pytest.approx(12.7062 * 0.1, rel=1e-4)  # any table of Student's t
    assert Cell(values=(0.5,)).half_width is None


def test_a_model_that_does_not_beat_a_reference_is_shown_as_such() -> None:
    table = table_of(SEEDS, SCORES)
    rows = {row.label: row for row in table.rows}
    assert rows["LSTM"].cells[1].values == (0.5, 0.6)
    assert rows["LSTM"].note == "does not beat: copy of the last frame (at one)"
    assert rows["S2GRU"].note == "does not beat: copy of the last frame (everywhere)"
    assert (table.ahead(rows["LSTM"]), table.ahead(rows["S2GRU"])) == ((1, 2), (0, 2))
    assert [row.label for row in table.rows][:3] == ["S2GRU", "LSTM", "TTO"]  # the paper's order


def test_an_oracle_is_never_called_the_best() -> None:
    table = table_of(SEEDS, SCORES)
    rows = {row.label: row for row in table.rows}
    assert table.best(1) == pytest.approx(0.55)
    assert table.is_best(rows["LSTM"], 1) and not table.is_best(rows["TTO"], 1)
    assert table_of(SEEDS[3:], SCORES).best(1) is None  # nothing to compare it with


def test_no_memory_is_a_reference_over_which_models_gain() -> None:
    forgetful = [named_run("no_memory", "w", seed) for seed in range(3)]
    scores = SCORES | {"no_memory-0": 0.54, "no_memory-1": 0.58, "no_memory-2": 0.56}
    table = table_of([*forgetful, *SEEDS], scores)
    rows = {row.label: row for row in table.rows}
    assert [row.label for row in table.rows][-1] == "No memory" and rows["No memory"].kind == "reference"
    assert rows["LSTM"].note == "does not beat: copy of the last frame (at one); No memory (everywhere)"
    assert rows["S2GRU"].note.endswith("No memory (everywhere)") and rows["TTO"].note.endswith("No memory (at one)")
    (gain,) = gains([table])
    assert [row.label for row in gain.rows] == ["S2GRU", "LSTM", "TTO"]
    cell = gain["LSTM", "three"]
    assert cell.values == pytest.approx((-0.06, 0.04)) and cell.mean == pytest.approx(-0.01)
    welch = stats.ttest_ind((0.5, 0.6), (0.54, 0.58, 0.56), equal_var=False).confidence_interval(0.95)
    assert cell.half_width == pytest.approx((welch.high - welch.low) / 2)
    assert gain["S2GRU", "three"].half_width is None and gain["LSTM", "one"].half_width == 0.0
    assert gains([table_of(SEEDS, SCORES)]) == []


def test_what_stands_above_is_not_to_be_beaten_and_ends_the_range_of_shares() -> None:
    scores = {"one": (0.3, 0.4, 0.9), "two": (0.6, 0.4, 0.8), "three": (0.5, 0.4, 0.42), "four": (0.5, 0.4, None)}
    columns = {
        name: Comparison(
            runs={"s2gru-0": {"f1": model}},
            references={"copy": {"f1": low}, **({} if high is None else {"filter": {"f1": high}})},
        ).column("f1")
        for name, (model, low, high) in scores.items()
    }
    references = {
        "copy": Reference(title="copy", share=0.0),
        "filter": Reference(title="exact filter", direction="above", share=1.0),
        "unasked": Reference(title="unasked", direction="above"),
    }
    rows = compare(entries_of([named_run("s2gru", "w")]), columns, references)
    table = Table(name="t", title="F1", caption="", corner="", columns=tuple(columns), rows=rows)
    assert [row.label for row in rows] == ["S2GRU", "copy", "exact filter"]
    assert rows[0].note == "does not beat: copy (at one)"
    assert table.ahead(rows[0]) == (3, 4)
    (share,) = shares([table])
    assert [row.label for row in share.rows] == ["S2GRU"]
    found = [cell.mean for cell in share.rows[0].cells]
    assert found[:2] == pytest.approx([-0.2, 0.5])
    assert found[2:] == [None, None]  # nothing to gain there, and nothing known
    assert shares([table_of(SEEDS, SCORES)]) == []


def test_models_without_a_colour_and_variants_of_one_get_free_ones() -> None:
    runs = [
        named_run("lstm", "w", label="LSTM (a)", name="a"),
        named_run("lstm", "w", label="LSTM (b)", name="b"),
        named_run("s2gru", "w"),
        named_run("mine", "w"),
    ]
    entries = {entry.label: entry for entry in entries_of(runs)}
    assert entries["S2GRU"].colour == "#d55e00"
    assert len({entry.colour for entry in entries.values()}) == 4
    assert list(entries) == ["S2GRU", "LSTM (a)", "LSTM (b)", "mine"]


def test_the_paper_s_models_that_were_not_run_come_last() -> None:
    found = Comparison(runs={"s2gru-0": {"f1": 0.5}}, references={})
    columns = {"x": found.column("f1", {"s2gru": 0.6, "rmc": 0.7})}
    rows = compare(entries_of([named_run("s2gru", "w")]), columns, {}, ["s2gru", "rmc", "lstm"])
    assert [(row.label, row.kind, row.cells[0].paper) for row in rows] == [
        ("S2GRU", "model", 0.6),
        ("RMC (not run here)", "paper", 0.7),
    ]


def test_csv_holds_every_value() -> None:
    table = table_of(SEEDS, SCORES)
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    (cell,) = [row for row in rows if row["row"] == "LSTM" and row["column"] == "three"]
    assert cell["values"] == "0.5;0.6"
    assert float(cell["mean"]) == pytest.approx(0.55)
    assert len(rows) == 2 * (3 + len(REFERENCES))


def test_markdown_shows_means_intervals_the_best_and_the_paper_s_numbers() -> None:
    found = Comparison(runs={"lstm-0": {"f1": 0.5}, "lstm-1": {"f1": 0.6}, "s2gru-0": {"f1": 0.2}}, references={})
    columns = {"a|b": found.column("f1", {"s2gru": 0.61, "rmc": 0.7})}
    rows = compare(entries_of(SEEDS[:3]), columns, REFERENCES, ["rmc"])
    table = Table(name="t", title="F1", caption="Larger is better.", corner="group", columns=("a|b",), rows=rows)
    half = stats.t.ppf(0.975, 1) * 0.05
    assert table.to_markdown().splitlines() == [
        "### F1",
        "",
        "Larger is better.",
        "",
        r"| group | a\|b |",
        "| --- | --- |",
        "| S2GRU | 0.200 (0.610) |",
        f"| LSTM | **0.550** ± {half:.3f} |",
        "| copy of the last frame | – |",
        "| always off | – |",
        "| RMC (not run here) | (0.700) |",
    ]


def test_tables_are_found_by_name_and_the_main_one_by_a_short_name() -> None:
    main, other = table_of(SEEDS, SCORES, short=("one_step",)), table_of(SEEDS, SCORES, name="w_views")
    tables = Tables([main, other])
    assert list(tables) == ["w_one_step_f1", "w_views"] and len(tables) == 2
    assert tables["one_step"] is tables["w_one_step"] is tables["w_one_step_f1"] is main
    assert main["LSTM", "three"].mean == pytest.approx(0.55)
    with pytest.raises(KeyError, match="there is no table 'one_stp'; did you mean 'one_step'"):
        tables["one_stp"]
    with pytest.raises(UnknownNameError, match="has no cell"):
        main["LSTM", "two"]


def test_a_short_name_of_two_worlds_is_nobody_s() -> None:
    tables = [
        table_of(SEEDS, SCORES, name=f"{world}_one_step_f1", world=world, short=("one_step",)) for world in ("v", "w")
    ]
    with pytest.raises(UnknownNameError, match="v_one_step, w_one_step"):
        Tables(tables)["one_step"]
    assert Tables(tables)["v_one_step"] is tables[0]


def test_the_page_needs_nothing_else_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    evil = [named_run("lstm", "w", seed, label="<b>LSTM") for seed in (0, 1)]
    table = table_of(evil, SCORES, in_distribution=("three",))
    section = Section(title="T", text="a < b", tables=[table], figures=[(picture, 'quote " it')])
    text = page(evil, [section], package="p", store="</code><script>", notes=["A note."])
    assert "<b>LSTM" not in text and "&lt;b&gt;LSTM" in text
    assert "data:image/png;base64,iVBORw==" in text
    for outside in ("http://", "https://", "<script", 'src="/', "url(", 'quote "'):
        assert outside not in text
    assert "does not beat" in text and "±" in text and "A note." in text
    won, compared = table.ahead(table.rows[0])
    assert f"{won} of {compared} columns" in " ".join(text.split())
    shown = table._repr_html_()
    assert "&lt;b&gt;LSTM" in shown and "0.550" in shown and 'class="trained"' in shown


def test_eighteen_of_twenty_is_not_none_of_twenty() -> None:
    for won, compared, expected in ((20, 20, "won"), (18, 20, "mixed"), (10, 20, "mixed"), (9, 20, "lost")):
        assert standing(won, compared) == expected, (won, compared)
