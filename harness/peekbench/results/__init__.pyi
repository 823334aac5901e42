from .decisions import control_outcome as control_outcome
from .decisions import decide as decide
from .paired_effects import Configuration as Configuration
from .paired_effects import Configurations as Configurations
from .paired_effects import configurations as configurations
from .paired_effects import plain_cell as plain_cell
