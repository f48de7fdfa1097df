// A seed on a GPU (compiler/runtime/host/seeds.py): the number that torch.randint would draw there, computed by the host and
// written by the stream itself, so that no kernel is launched for it.
//
// Compiled as one text with launcher.cpp, which stands before it and declares what this uses of Python.

namespace {

struct Seed {
  Address address;
  int (*write)(void* stream, std::uint64_t address, std::uint64_t value, unsigned flags);  // cuStreamWriteValue64
  int (*capturing)(void* stream, int* status);                                             // cuStreamIsCapturing
  PyObject* initial_seed;   // of torch's generator of the device, as the two after it
  PyObject* get_offset;
  PyObject* set_offset;
  PyObject* stream_of;      // a function of the device's number
  PyObject* device_number;
  PyObject* otherwise;      // a function of the tensor, for what a recording must draw anew, and for other drivers
};

// What a thread of torch's kernels takes of its sequence for one number, as the generator counts.
constexpr std::uint64_t NUMBERS_OF_A_DRAW = 4;

// The first 64 bits that the first thread of torch's kernel draws (Philox 4x32-10: Salmon et al., Parallel random
// numbers: as easy as 1, 2, 3, 2011), as curand puts the words together.
std::uint64_t drawn(std::uint64_t seed, std::uint64_t offset) {
  const std::uint64_t place = offset / NUMBERS_OF_A_DRAW;
  std::uint32_t a = place, b = place >> 32, c = 0, d = 0, key = seed, other_key = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = 0xD2511F53ull * a, second = 0xCD9E8D57ull * c;
    a = static_cast<std::uint32_t>(second >> 32) ^ b ^ key;
    b = static_cast<std::uint32_t>(second);
    c = static_cast<std::uint32_t>(first >> 32) ^ d ^ other_key;
    d = static_cast<std::uint32_t>(first);
    key += 0x9E3779B9u;
    other_key += 0xBB67AE85u;
  }
  return static_cast<std::uint64_t>(a) << 32 | b;
}

// The number that torch.randint(-2**63, 2**63 - 1) makes of 64 bits, as the bits that it has in memory.
std::uint64_t seed_of(std::uint64_t bits) { return bits % ~0ull + (1ull << 63); }

bool asked(PyObject* method, std::uint64_t& value) {
  PyObject* answer = PyObject_CallObject(method, nullptr);
  if (!answer) return false;
  value = PyLong_AsUnsignedLongLong(answer);
  Py_DecRef(answer);
  return !PyErr_Occurred();
}

bool told(PyObject* method, std::uint64_t value) {
  PyObject* given = PyLong_FromUnsignedLongLong(value);
  PyObject* done = given ? PyObject_Vectorcall(method, &given, 1, nullptr) : nullptr;
  Py_DecRef(given);
  Py_DecRef(done);
  return done;
}

// The generator is asked and told while no other thread runs Python, so that two calls never draw the same.
PyObject* draw_seed(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& record = *static_cast<const Seed*>(PyCapsule_GetPointer(self, nullptr));
  std::int64_t at;
  if (!read(record.address, 1, 0, arguments, count, &at)) return nullptr;
  PyObject* number = PyObject_Vectorcall(record.stream_of, &record.device_number, 1, nullptr);
  if (!number) return nullptr;
  void* stream = reinterpret_cast<void*>(PyLong_AsLongLong(number));
  Py_DecRef(number);
  const auto otherwise = [&] { return PyObject_Vectorcall(record.otherwise, arguments, count, nullptr); };
  int is_recorded = 0;
  if (record.capturing(stream, &is_recorded) || is_recorded) return otherwise();
  std::uint64_t seed, offset;
  if (!asked(record.initial_seed, seed) || !asked(record.get_offset, offset)) return nullptr;
  if (!told(record.set_offset, offset + NUMBERS_OF_A_DRAW)) return nullptr;
  PyThreadState* state = PyEval_SaveThread();  // the driver waits where its queue is full
  const int failed = record.write(stream, at, seed_of(drawn(seed, offset)), 0);
  PyEval_RestoreThread(state);
  if (!failed) return none();
  return told(record.set_offset, offset) ? otherwise() : nullptr;
}

PyMethodDef seed_method{"draw_seed", draw_seed, FASTCALL, nullptr};

}  // namespace

extern "C" PyObject* seed_drawer(PyObject* owner, void* record) { return function_of(&seed_method, owner, record); }
