"""`python -m peekbench` is the command `peekbench`."""

from peekbench.cli import main

if __name__ == "__main__":
    main()
