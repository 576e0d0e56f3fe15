"""`gymnasium.make("s2rm_data.envs.gym:SMAC-v0")`: to import this module registers it."""

from s2rm_data.starcraft.envs import gym as gym
