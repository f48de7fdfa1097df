// A kernel's result of one element in the host's memory (compiler/runtime/host/host_values.py): the kernel writes it there, the
// stream says so behind it, and the host looks at its own memory for that, while the GPU goes on with other kernels.
//
// Compiled as one text with launcher.cpp, which stands before it and declares what this uses of Python.

extern "C" {
int PyList_SetSlice(PyObject*, std::intptr_t from, std::intptr_t to, PyObject* items);
int PyList_Append(PyObject*, PyObject*);
}

namespace {

struct HostValue {
  Address address;
  int (*write)(void* stream, std::uint64_t address, std::uint32_t value, unsigned flags);  // cuStreamWriteValue32
  int (*query)(void* stream);      // cuStreamQuery
  int (*wait)(void* stream);       // cuStreamSynchronize, where the host is to wait as the driver was told to; else null
  std::int64_t is_truth;           // whether a bool of Python is wanted, and not a tensor
  PyObject* unused;                // a list of places, each a tensor on the host
  PyObject* make;                  // a function that gives a new place
  PyObject* copy;                  // a function of a tensor
  PyObject* debug_mode;            // torch.cuda.get_sync_debug_mode
  PyObject* synchronise;           // a function that waits for the stream as torch does, which may warn or raise
  PyObject* stream_of;             // a function of the device's number
  PyObject* device_number;
};

// Behind the value are two numbers of 32 bits: the call that it last arrived for, and the one that it is expected for.
constexpr int ARRIVED = 16, EXPECTED = 20;  // as in host_values.py
constexpr int NOT_READY = 600;              // CUDA_ERROR_NOT_READY
constexpr unsigned LOOKS = 4096;            // at the memory, for each time that the driver is asked: some 0.1 ms

std::uint32_t* number_at(char* value, int offset) { return reinterpret_cast<std::uint32_t*>(value + offset); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool stream_of(const HostValue& record, void*& stream) {
  PyObject* number = PyObject_Vectorcall(record.stream_of, &record.device_number, 1, nullptr);
  if (!number) return false;
  stream = reinterpret_cast<void*>(PyLong_AsLongLong(number));
  Py_DecRef(number);
  return true;
}

char* value_at(const HostValue& record, PyObject* const* arguments, std::intptr_t count) {
  std::int64_t at;
  return read(record.address, 1, 0, arguments, count, &at) ? reinterpret_cast<char*>(at) : nullptr;
}

// A place for the value of one call. Calls of other threads have other places.
PyObject* place_value(PyObject* self, PyObject* const*, std::intptr_t) {
  const auto& record = *static_cast<const HostValue*>(PyCapsule_GetPointer(self, nullptr));
  const std::intptr_t unused = PyList_Size(record.unused);
  PyObject* place;
  if (unused > 0) {
    Py_IncRef(place = PyList_GetItem(record.unused, unused - 1));
    PyList_SetSlice(record.unused, unused - 1, unused, nullptr);
  } else if (!(place = PyObject_CallObject(record.make, nullptr))) {
    return nullptr;
  }
  char* value = value_at(record, &place, 1);
  if (!value) return Py_DecRef(place), nullptr;
  ++*number_at(value, EXPECTED);
  return place;
}

// To be called when the kernel that writes the value was launched.
PyObject* send_value(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& record = *static_cast<const HostValue*>(PyCapsule_GetPointer(self, nullptr));
  void* stream;
  char* value = value_at(record, arguments, count);
  if (!value || !stream_of(record, stream)) return nullptr;
  PyThreadState* state = PyEval_SaveThread();  // the driver waits where its queue is full
  const int failed = record.write(stream, reinterpret_cast<std::uint64_t>(value + ARRIVED), *number_at(value, EXPECTED), 0);
  PyEval_RestoreThread(state);
  if (failed) return PyErr_Format(PyExc_RuntimeError, "cuStreamWriteValue32 failed with CUDA's error %d", failed);
  return none();
}

// Look until the value is there; gives CUDA's error where the stream has one, or ended without it.
int wait_for(const HostValue& record, char* value, void* stream) {
  const std::uint32_t expected = *number_at(value, EXPECTED);
  const auto is_there = [&] { return __atomic_load_n(number_at(value, ARRIVED), __ATOMIC_ACQUIRE) == expected; };
  if (is_there()) return 0;
  if (record.wait) {
    const int failed = record.wait(stream);
    return failed || is_there() ? failed : NOT_READY;
  }
  for (;;) {
    for (unsigned look = 0; look < LOOKS; ++look) {
      if (is_there()) return 0;
      pause();
    }
    const int status = record.query(stream);
    if (status != NOT_READY) return status || is_there() ? status : NOT_READY;
  }
}

PyObject* take_value(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& record = *static_cast<const HostValue*>(PyCapsule_GetPointer(self, nullptr));
  void* stream;
  char* value = value_at(record, arguments, count);
  if (!value || !stream_of(record, stream)) return nullptr;
  PyObject* mode = PyObject_CallObject(record.debug_mode, nullptr);
  if (!mode) return nullptr;
  const bool is_told = PyObject_IsTrue(mode);
  Py_DecRef(mode);
  if (is_told) {
    PyObject* done = PyObject_CallObject(record.synchronise, nullptr);
    if (!done) return nullptr;
    Py_DecRef(done);
  }
  PyThreadState* state = PyEval_SaveThread();
  const int failed = wait_for(record, value, stream);
  PyEval_RestoreThread(state);
  if (failed) return PyErr_Format(PyExc_RuntimeError, "a value that a kernel gives was waited for: CUDA's error %d", failed);
  PyObject* taken = record.is_truth ? PyBool_FromLong(*value != 0)
                                    : PyObject_Vectorcall(record.copy, arguments, 1, nullptr);
  if (taken && PyList_Append(record.unused, arguments[0])) return Py_DecRef(taken), nullptr;
  return taken;
}

PyMethodDef place_method{"place", place_value, FASTCALL, nullptr};
PyMethodDef send_method{"send", send_value, FASTCALL, nullptr};
PyMethodDef take_method{"take", take_value, FASTCALL, nullptr};

}  // namespace

extern "C" PyObject* place_of_value(PyObject* owner, void* record) { return function_of(&place_method, owner, record); }
extern "C" PyObject* sender_of_value(PyObject* owner, void* record) { return function_of(&send_method, owner, record); }
extern "C" PyObject* taker_of_value(PyObject* owner, void* record) { return function_of(&take_method, owner, record); }
