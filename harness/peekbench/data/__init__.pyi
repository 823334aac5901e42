from .loading import hash_rows as hash_rows
from .loading import load_dataset as load_dataset
from .loading import size_limit as size_limit
from .parquet import class_names_of as class_names_of
from .parquet import read_parquet as read_parquet
from .texts import group_duplicates as group_duplicates
from .texts import keep_first as keep_first
