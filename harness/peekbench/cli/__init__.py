"""The command line: commands, their options, and what they print."""

from peekbench.cli.app import main as main
