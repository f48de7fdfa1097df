"""`as_user.py USER PROGRAM …` runs a program as a plain user who may read the interpreter, wherever root has put it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from server.sandbox.code_access import open_to_others
from server.sandbox.config import code_folders

user, program = int(sys.argv[1]), sys.argv[2:]
open_to_others((*code_folders(), Path(__file__).parents[2]), Path(os.environ["WORKSPACE"]))
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
os.execv(program[0], program)
