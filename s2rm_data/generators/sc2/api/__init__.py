"""StarCraft II's own API, from both ends: `server` plays the engine to clients, `client` plays the real game.

`catalogue` holds the API's numbers, `packages` checks what is installed.
"""
