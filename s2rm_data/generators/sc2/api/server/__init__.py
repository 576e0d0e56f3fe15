"""The engine behind StarCraft II's official API, so that pysc2, SMAC and python-sc2 play it with no game installed.

`game` is the state of one game, `orders` takes commands, `world` and `units` put what it is into messages, `requests`
answers them, `serve` listens, `install` lays out a folder that clients take for StarCraft II.
"""
