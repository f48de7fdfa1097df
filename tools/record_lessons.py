"""Record what the programs of the lessons come to on this machine's GPU: `docs/lessons/recorded/NAME.DEVICE.json`.

    python tools/record_lessons.py [NAME ...]

Each program is explored and timed as the service does it. A program that ends in anything but a correct result, and a
machine without a GPU, record nothing and say why.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from compiler.options import Options
from compiler.pipeline import explore
from compiler.wording import counted
from server.lessons.models import Figures, Lesson
from server.lessons.reading import lessons
from server.lessons.recorded import FOLDER, RecordedFile, program_hash

LESSONS = Path(__file__).resolve().parents[1] / "docs" / "lessons"


def main(names: list[str]) -> int:
    """Records the lessons of these names, or all. The answer is the exit status."""
    if not torch.cuda.is_available():
        print("This machine has no GPU that torch can use: there is nothing to record.", file=sys.stderr)
        return 1
    device = torch.cuda.get_device_name()
    failed = False
    for lesson in lessons():
        if names and lesson.name not in names:
            continue
        record = _record(lesson, device)
        failed |= record is None
        if record is not None:
            place = LESSONS / FOLDER / f"{lesson.name}.{re.sub('[^a-z0-9]+', '_', device.lower())}.json"
            place.parent.mkdir(exist_ok=True)
            place.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
            print(f"{place.name}: {counted(len(record.programs), 'program')}")
    return 1 if failed else 0


def _record(lesson: Lesson, device: str) -> RecordedFile | None:
    programs: dict[str, Figures] = {}
    triton = None
    for step in lesson.steps:
        known = program_hash(step.source, step.options)
        if known in programs:
            continue
        report = explore(step.source, Options(**step.options))
        if report.status != "ok" or report.environment.device != "cuda":
            print(f"{lesson.name}, {step.title}: {report.status} on {report.environment.device}", file=sys.stderr)
            return None
        triton = report.environment.triton
        programs[known] = Figures(**report.summary.model_dump(include=set(Figures.model_fields)))
    return RecordedFile(device=device, torch=torch.__version__, triton=triton, programs=programs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
