"""Run `python -m peekbench` as the command `peekbench`."""

from peekbench.cli import main

if __name__ == "__main__":
    main()
