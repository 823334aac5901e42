"""Recipes of the tasks: packages, their classes, and the modules that belong to each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recipe:
    """Definition of one task."""

    task: str
    """Name of the task."""
    title: str
    """Name of the package in running text."""
    package: str
    """Name of the package in import statements; empty for the standard library."""
    distribution: str
    """Name of the package in package indexes; empty for the standard library."""
    license: str
    """License of the package."""
    instruction: str
    """Sentences for prompts: what a text is, and what to answer."""
    classes: Mapping[str, tuple[str, ...]]
    """Modules and subpackages of each class, as paths relative to the package's folder. Modules that an installed
    version does not have are skipped."""
    aliases: frozenset[str] = frozenset()
    """Names under which examples import the package."""

    def module_classes(self) -> Mapping[str, frozenset[int]]:
        """Return the labels of the classes of each module and subpackage; names are in lower case."""
        classes: dict[str, frozenset[int]] = {}
        for label, modules in enumerate(self.classes.values()):
            for name in "/".join(modules).lower().split("/"):
                classes[name] = classes.get(name, frozenset()) | {label}
        return classes


STDLIB = Recipe(
    task="stdlib",
    title="the Python standard library",
    package="",
    distribution="",
    license="PSF-2.0",
    instruction="The text is from the documentation of Python's standard library. Answer with its subject.",
    classes={
        "concurrency": (
            "_threading_local", "asynchat", "asyncio", "asyncore", "concurrent", "contextvars", "multiprocessing",
            "queue", "sched", "selectors", "signal", "subprocess", "threading",
        ),
        "data types and numbers": (
            "_collections_abc", "_pydecimal", "_strptime", "_weakrefset", "bisect", "calendar", "collections",
            "colorsys", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "graphlib",
            "heapq", "numbers", "operator", "random", "statistics", "types", "uuid", "weakref", "zoneinfo",
        ),
        "files and operating system": (
            "_compression", "_pyio", "bz2", "compression", "dbm", "filecmp", "fileinput", "fnmatch", "genericpath",
            "getpass", "glob", "gzip", "io", "linecache", "lzma", "ntpath", "nturl2path", "os", "pathlib", "platform",
            "posixpath", "pty", "shelve", "shutil", "stat", "tarfile", "tempfile", "tty", "zipapp", "zipfile",
        ),
        "graphical interfaces": ("curses", "tkinter", "turtle"),
        "internet and e-mail": (
            "cgi", "email", "ftplib", "http", "imaplib", "ipaddress", "mailbox", "mailcap", "mimetypes", "netrc",
            "nntplib", "poplib", "quopri", "smtpd", "smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib",
            "uu", "webbrowser", "wsgiref", "xmlrpc",
        ),
        "testing, debugging and logging": (
            "bdb", "cProfile", "cgitb", "doctest", "faulthandler", "logging", "pdb", "profile", "pstats", "timeit",
            "trace", "traceback", "tracemalloc", "unittest", "warnings",
        ),
        "text and markup": (
            "_markupbase", "argparse", "base64", "codecs", "configparser", "csv", "difflib", "getopt", "gettext",
            "html", "json", "locale", "optparse", "plistlib", "pprint", "re", "reprlib", "shlex", "string",
            "stringprep", "textwrap", "tomllib", "xml",
        ),
    },
)  # fmt: skip

NUMPY = Recipe(
    task="numpy",
    title="NumPy",
    package="numpy",
    distribution="numpy",
    license="BSD-3-Clause",
    instruction="The text is from the documentation of NumPy. Answer with its subject.",
    classes={
        "array functions": (
            "lib/_array_utils_impl", "lib/_arraypad_impl", "lib/_arraysetops_impl", "lib/_arrayterator_impl",
            "lib/_function_base_impl", "lib/_histograms_impl", "lib/_index_tricks_impl", "lib/_nanfunctions_impl",
            "lib/_scimath_impl", "lib/_shape_base_impl", "lib/_stride_tricks_impl", "lib/_twodim_base_impl",
            "lib/_type_check_impl", "lib/_ufunclike_impl", "lib/_user_array_impl", "lib/mixins", "lib/recfunctions",
        ),
        "arrays and data types": (
            "_core/_add_newdocs", "_core/_add_newdocs_scalars", "_core/_asarray", "_core/_dtype", "_core/_dtype_ctypes",
            "_core/_exceptions", "_core/_internal", "_core/_methods", "_core/_string_helpers", "_core/_type_aliases",
            "_core/_ufunc_config", "_core/arrayprint", "_core/einsumfunc", "_core/fromnumeric", "_core/function_base",
            "_core/getlimits", "_core/memmap", "_core/multiarray", "_core/numeric", "_core/numerictypes",
            "_core/overrides", "_core/printoptions", "_core/records", "_core/shape_base", "_core/umath",
        ),
        "developer tools": ("ctypeslib", "f2py", "testing", "typing", "_typing", "lib/_utils_impl", "lib/introspect"),
        "input and output": (
            "lib/_datasource", "lib/_format_impl", "lib/_iotools", "lib/_npyio_impl", "lib/format", "lib/npyio",
        ),
        "linear algebra and Fourier transforms": ("fft", "linalg", "matlib", "matrixlib"),
        "masked arrays": ("ma",),
        "polynomials": ("lib/_polynomial_impl", "polynomial"),
        "strings": ("_core/defchararray", "_core/strings", "char", "strings"),
    },
    aliases=frozenset({"np"}),
)  # fmt: skip

SCIPY = Recipe(
    task="scipy",
    title="SciPy",
    package="scipy",
    distribution="scipy",
    license="BSD-3-Clause",
    instruction="The text is from the documentation of SciPy. Answer with its subject.",
    classes={
        "interpolation and integration": ("differentiate", "integrate", "interpolate"),
        "linear algebra": ("linalg",),
        "optimization": ("odr", "optimize"),
        "signals and Fourier transforms": ("fft", "fftpack", "signal"),
        "space, images and clusters": ("cluster", "ndimage", "spatial"),
        "sparse matrices": ("sparse",),
        "special functions": ("special",),
        "statistics": ("stats",),
    },
)

PANDAS = Recipe(
    task="pandas",
    title="pandas",
    package="pandas",
    distribution="pandas",
    license="BSD-3-Clause",
    instruction="The text is from the documentation of pandas. Answer with its subject.",
    classes={
        "arrays and data types": ("arrays", "core/array_algos", "core/arrays", "core/dtypes"),
        "DataFrame and Series": (
            "core/accessor", "core/algorithms", "core/apply", "core/arraylike", "core/base", "core/frame",
            "core/generic", "core/methods", "core/missing", "core/nanops", "core/ops", "core/reshape", "core/sample",
            "core/series", "core/sorting", "core/strings",
        ),
        "display and plotting": ("io/formats", "plotting"),
        "grouping, windows and resampling": ("core/groupby", "core/resample", "core/window"),
        "indexes": ("core/indexers", "core/indexes", "core/indexing"),
        "reading and writing files": (
            "io/_util", "io/common", "io/excel", "io/feather_format", "io/html", "io/json", "io/orc", "io/parquet",
            "io/parsers", "io/pickle", "io/pytables", "io/sas", "io/spss", "io/sql", "io/stata", "io/xml",
        ),
    },
    aliases=frozenset({"pd"}),
)  # fmt: skip

SKLEARN = Recipe(
    task="sklearn",
    title="scikit-learn",
    package="sklearn",
    distribution="scikit-learn",
    license="BSD-3-Clause",
    instruction="The text is from the documentation of scikit-learn. Answer with its subject.",
    classes={
        "clustering and mixtures": ("cluster", "mixture"),
        "dimension reduction": (
            "covariance", "cross_decomposition", "decomposition", "kernel_approximation", "manifold",
            "random_projection",
        ),
        "linear models": ("linear_model", "svm"),
        "metrics and model selection": ("calibration", "inspection", "metrics", "model_selection"),
        "neighbors and probabilistic models": (
            "discriminant_analysis", "gaussian_process", "naive_bayes", "neighbors", "semi_supervised",
        ),
        "preprocessing": ("compose", "feature_extraction", "feature_selection", "impute", "preprocessing"),
        "trees and ensembles": ("ensemble", "tree"),
    },
)  # fmt: skip

RECIPES = (STDLIB, NUMPY, SCIPY, PANDAS, SKLEARN)
