"""`python -m s2rm_data` is `s2rm-data`."""

from s2rm_data.cli.data import main

if __name__ == "__main__":
    main()
