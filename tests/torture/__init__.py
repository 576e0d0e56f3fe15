"""Attacks on everything that reads, writes or listens: `python tests/torture/run.py --help`, or `make torture`.

An attack is a function of a random generator and a workspace. It makes one case, and raises `Finding` when something
broke: a traceback, a hang, an undocumented exit status, too much memory, something lost or something silent.
"""
