"""The report as data. Its records are defined below the plugin API, because formats of plugins receive a report."""

from peekbench.records.report import MethodFacts as MethodFacts
from peekbench.records.report import Report as Report
