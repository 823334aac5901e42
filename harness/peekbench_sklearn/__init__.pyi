from .estimators import make_estimator_entry as make_estimator_entry
from .estimators import unlabeled_steps as unlabeled_steps
from .held_data import read_held as read_held
from .scorers import check_score as check_score
from .scorers import check_scorer as check_scorer
from .scorers import load_scorer as load_scorer
