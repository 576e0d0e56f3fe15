"""Back ends other than the embedded engine: StarCraft II through its official API (`s2rm-data sc2 --backend
starcraft2`).

`catalogue` holds the API's numbers, `packages` checks what is installed, `process` starts and watches the game,
`field` reads its observations, `battle` plays one episode, `split` describes the episodes to a store.
"""
