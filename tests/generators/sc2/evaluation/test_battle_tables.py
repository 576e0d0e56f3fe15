from __future__ import annotations

from contexts import named_run

from s2rm_data.evaluation.candidates import entries_of
from s2rm_data.evaluation.runs import Run
from s2rm_data.evaluation.tables import Comparison
from s2rm_data.generators.sc2.evaluation import battle_tables
from s2rm_data.generators.sc2.evaluation.battle_tables import BattleResults, robustness_tables, unseen_tables

NOTHING = Comparison(runs={}, references={})


def results_of(**fields) -> BattleResults:
    described = {
        "val_groups": ["sc2/2s3z/val"],
        "test_groups": {s: f"sc2/{s}/test" for s in ("2s3z", "1s2z")},
        "episodes": {"sc2/2s3z/test": 2, "sc2/1s2z/test": 2, "sc2/2s3z/val": 1, "sc2/3m/val": 1},
        "robustness": {100: NOTHING},
        "unseen": {"2s3z": NOTHING, "1s2z": NOTHING},
        "examples": {},
    }
    return BattleResults(**{**described, **fields})


def run_of(model: str = "rmc") -> Run:
    return named_run(model, "sc2", facts={"sc2/2s3z/train": {}, "sc2/2s3z/val": {}})


def test_the_paper_s_numbers_stand_beside_ours() -> None:
    found = Comparison(runs={"rmc-0": {"ut_f1": 0.5}}, references={})
    (table,) = unseen_tables(results_of(unseen={"1s2z": found}), entries_of([run_of()]), {}, "sc2")
    assert table["RMC", "UT-F1"].paper == 0.6839
    assert table["RMC", "UT-F1"].values == (0.5,)
    assert table["S2GRU (not run here)", "LL"].paper == -0.0233
    assert table["RMC", "UT-F1, units only"].paper is None


def test_the_paper_s_numbers_are_complete() -> None:
    assert battle_tables.paper_robustness("ll", 20)["tto"] == -0.434099
    assert battle_tables.paper_robustness("ll", 25) == {}
    for score in ("fm_f1", "ut_f1", "nmse", "ll"):
        for percent in range(20, 101, 10):
            assert set(battle_tables.paper_robustness(score, percent)) == set(battle_tables.paper_models())


def test_a_scenario_that_was_trained_on_is_not_called_unseen() -> None:
    entries = entries_of([run_of()])
    titles = [table.title for table in unseen_tables(results_of(), entries, {}, "sc2")]
    assert titles == ["Scenario 2s3z, which the models were trained on", "Unseen scenario 1s2z"]
    both = entries_of([run_of(), named_run("lstm", "sc2")])
    assert unseen_tables(results_of(), both, {}, "sc2")[0].title == "Scenario 2s3z, which some models were trained on"
    assert "of the training scenarios (2s3z)" in robustness_tables(results_of(), entries, {}, "sc2")[0].caption
    more = results_of(val_groups=["sc2/2s3z/val", "sc2/3m/val"])
    assert "not every model was trained on (2s3z, 3m)" in robustness_tables(more, entries, {}, "sc2")[0].caption
