"""Every fault in turn: each call to the disk, and each request to a bucket, of every command that writes fails once.

`make faults`, or `python tests/faults/run.py --help`; docs/reliability.md says what was found.
"""
