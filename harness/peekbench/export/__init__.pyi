from .formats import FORMATS as FORMATS
from .formats import export_run as export_run
