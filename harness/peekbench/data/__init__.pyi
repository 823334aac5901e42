from .loading import hash_rows as hash_rows
from .loading import load_dataset as load_dataset
from .texts import group_duplicates as group_duplicates
