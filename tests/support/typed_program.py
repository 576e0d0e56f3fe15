"""A user's program, which nobody runs: `mypy` checks it strictly, so that the package's types are right and public."""

import torch

import s2rm_data as s2

outcome = s2.generate("bballs", out="data.zarr", balls="1-3", train=40, val=4, test=4)
made: int = outcome.made
store = s2.open("data.zarr")
frames = store["bballs/train"]["frames"][0]
data = s2.dataset(store["bballs/train"], window=6)
for items in torch.utils.data.DataLoader(data, batch_size=4):
    batch = s2.Batch(**items)
run = s2.train(store, model="lstm", preset="smoke", steps=2)
model = s2.load_model(run.path / "best.safetensors")
parameters: int = s2.build_model("s2gru", world="bballs").parameter_count()
table = s2.evaluate([run], store).tables["one_step"]
battle = s2.Battle("3s5z")
reward: float = battle.step(battle.available_actions().argmax(axis=1).tolist())
problems: list[str] = s2.verify("data.zarr").problems
