"""Functions of programs that wait for others: `shared_rows` and `look_back` say what they leave for each other."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "wait_for": '''@triton.jit
def wait_for(counter, count):
    """Wait until so many programs have counted themselves; what they wrote before can be read then."""
    arrived = tl.atomic_add(counter, 0, sem="acquire")
    while arrived < count:
        arrived = tl.atomic_add(counter, 0, sem="acquire")
''',
    "send": '''@triton.jit
def send(pointer, value, launch):
    """Leave 32 bits in one word with the number of the launch."""
    tl.store(pointer, (value.to(tl.int32, bitcast=True).to(tl.int64) << 32) | launch)
''',
    "receive": '''@triton.jit
def receive(pointer, launch):
    """The float32 at these places, when all of them are there."""
    words = tl.load(pointer, volatile=True)
    while any_lane((words & 0xFFFFFFFF) != launch):
        words = tl.load(pointer, volatile=True)
    return (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)
''',
    "send_wide": '''@triton.jit
def send_wide(pointer, apart, value, launch):
    """Leave 64 bits in two words that lie `apart`, each with the number of the launch."""
    bits = value.to(tl.int64, bitcast=True)
    tl.store(pointer, (bits << 32) | launch)
    tl.store(pointer + apart, (bits >> 32 << 32) | launch)
''',
    "look_back": '''@triton.jit
def look_back(pointer, is_before, launch):
    """The 32 bits that programs before this one leave at these places, when all of them are there; 0 elsewhere."""
    words = tl.load(pointer, is_before, other=launch, volatile=True)
    while any_lane((words & 0xFFFFFFFF) != launch):
        words = tl.load(pointer, is_before, other=launch, volatile=True)
    return (words >> 32).to(tl.int32)
''',
    "look_back_wide": '''@triton.jit
def look_back_wide(pointer, apart, is_before, launch):
    """The same of 64 bits in two words that lie `apart`."""
    low = look_back(pointer, is_before, launch).to(tl.int64) & 0xFFFFFFFF
    return (look_back(pointer + apart, is_before, launch).to(tl.int64) << 32) | low
''',
}
