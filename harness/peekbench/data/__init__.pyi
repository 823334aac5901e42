from .duplicates import group_duplicates as group_duplicates
from .duplicates import keep_first as keep_first
from .loading import hash_rows as hash_rows
from .loading import load_dataset as load_dataset
from .prompts import PromptFrame as PromptFrame
from .prompts import frame_prompt as frame_prompt
from .prompts import render_prompt as render_prompt
