from .tables import LOG_FORMATS as LOG_FORMATS
from .tables import ImportedScores as ImportedScores
from .tables import import_logs as import_logs
