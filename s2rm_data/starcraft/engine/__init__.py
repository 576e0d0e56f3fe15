"""The embedded battle engine: batches of StarCraft II battles at the game's own rules, compiled, without the game.

    engine = Engine(parse("3s5z"), seeds)         # seeds (B,) uint64, one battle each
    while not engine.done.all():
        engine.step(policy(engine.snapshot(), engine.available()))   # actions (B, N) int64, SMAC's numbers

`layout` says where a battle's numbers lie, `chance` draws, `combat` hits and heals, `motion` walks, `loop` is one
game loop, `step` one SMAC step, `batch` the class. Battle b is a function of (scenario, seeds[b], its actions) alone,
bit for bit, in a batch of any size."""

from s2rm_data.starcraft.engine.batch import ENEMY_ORDERS, Engine, Orders

__all__ = ["ENEMY_ORDERS", "Engine", "Orders"]
