"""StarCraft II itself as the back end (`s2rm-data sc2 --backend starcraft2`).

`choice` says which back end `auto` takes, `process` starts and watches the game, `field` reads its observations,
`battle` plays one episode, `split` describes the episodes to a store, `live` watches somebody else's environment.
"""
