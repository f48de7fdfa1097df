// A graph's wrapper as a flat list of steps (compiler/runtime/host/flat.py), which is gone through without a frame of Python.
//
// Compiled as one text with launcher.cpp, which stands before it and declares what this uses of Python.
#include <utility>

namespace {

// A wrapper as a list of steps over slots: first its inputs, then constants, then what its variables hold. Each step is
// the kind, then numbers as below; slots are numbers too. compiler/runtime/host/flat.py writes them.
enum Step : std::int64_t {
  CALL,       // to, function, a tuple of keywords or -1, count, arguments...: those of keywords last
  CALL_WITH,  // to, function, a tuple of all arguments
  UNPACK,     // from, count, to...
  LIST,       // to, count, items...
  MOVE,       // to, from
  FREE,       // what
  GIVE,       // count, items...: the end
};

constexpr int MOST_SLOTS = 512;  // as in flat.py

struct Flat {
  const std::int64_t* steps;
  std::int64_t inputs, constants, variables;
  PyObject* const* constant;
  int (*device)(int*);      // cuCtxGetDevice; null where any device will do
  std::int64_t on_device;   // where memory is made
  PyObject* otherwise;      // a function of the list of inputs, for calls on another device
  PyObject* gradients_on;   // torch.is_grad_enabled; null where there is nothing that autograd would record
  PyObject* set_gradients;  // a function of a bool
  PyObject* set_frames;     // a function of what Dynamo does with each frame of Python, which gives what it did
};

// What the steps do with the slots of one call: variables are owned, inputs and constants are not.
class FlatRun {
 public:
  FlatRun(const Flat& flat, PyObject* const* inputs) : flat(flat), first(flat.inputs + flat.constants) {
    for (std::int64_t n = 0; n < flat.inputs; ++n) slots[n] = inputs[n];
    for (std::int64_t n = 0; n < flat.constants; ++n) slots[flat.inputs + n] = flat.constant[n];
    for (std::int64_t n = 0; n < flat.variables; ++n) slots[first + n] = nullptr;
  }
  ~FlatRun() {
    for (std::int64_t n = first; n < first + flat.variables; ++n) Py_DecRef(slots[n]);
  }

  // The list of outputs; null with Python's error set where a step has failed.
  PyObject* run() {
    for (next = flat.steps;;) switch (*next++) {
        case CALL: {
          const std::int64_t to = *next++;
          PyObject* function = slots[*next++];
          const std::int64_t named = *next++, count = *next++;
          PyObject* names = named < 0 ? nullptr : slots[named];
          PyObject* arguments[MOST_ARGUMENTS];
          for (std::int64_t n = 0; n < count; ++n) arguments[n] = slots[*next++];
          const std::intptr_t by_position = names ? count - PySequence_Size(names) : count;
          if (!put(to, PyObject_Vectorcall(function, arguments, by_position, names))) return nullptr;
          break;
        }
        case CALL_WITH: {
          const std::int64_t to = *next++;
          PyObject* function = slots[*next++];
          if (!put(to, PyObject_CallObject(function, slots[*next++]))) return nullptr;
          break;
        }
        case UNPACK:
          if (!unpack()) return nullptr;
          break;
        case LIST: {
          const std::int64_t to = *next++;
          if (!put(to, list())) return nullptr;
          break;
        }
        case MOVE: {
          const std::int64_t to = *next++;
          PyObject* moved = slots[*next++];
          Py_IncRef(moved);
          put(to, moved);
          break;
        }
        case FREE: {
          const std::int64_t slot = *next++;
          if (slot >= first) Py_DecRef(std::exchange(slots[slot], nullptr));
          break;
        }
        default:
          return list();
      }
  }

 private:
  bool put(std::int64_t to, PyObject* value) {
    if (!value) return false;
    Py_DecRef(to < 0 ? value : std::exchange(slots[to], value));
    return true;
  }

  bool unpack() {
    PyObject* sequence = slots[*next++];
    const std::int64_t count = *next++;
    if (PySequence_Size(sequence) != count) {
      if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%lld results were expected", (long long)count);
      return false;
    }
    for (std::int64_t n = 0; n < count; ++n)
      if (!put(*next++, PySequence_GetItem(sequence, n))) return false;
    return true;
  }

  PyObject* list() {
    const std::int64_t count = *next++;
    PyObject* made = PyList_New(count);
    for (std::int64_t n = 0; made && n < count; ++n) {
      PyObject* item = slots[*next++];
      Py_IncRef(item);
      PyList_SetItem(made, n, item);
    }
    return made;
  }

  const Flat& flat;
  const std::int64_t first;
  const std::int64_t* next = nullptr;
  PyObject* slots[MOST_SLOTS];
};

bool set_gradients(const Flat& flat, bool on) {
  PyObject* value = PyBool_FromLong(on);
  PyObject* done = PyObject_Vectorcall(flat.set_gradients, &value, 1, nullptr);
  const bool is_done = done;
  Py_DecRef(value);
  Py_DecRef(done);
  return is_done;
}

// On the device where its memory is made the steps are run; else the list of inputs is left to `otherwise`.
PyObject* run_on_device(const Flat& flat, PyObject* const* inputs) {
  int device = -1;
  if (!flat.device || (flat.device(&device) == 0 && device == flat.on_device)) return FlatRun(flat, inputs).run();
  PyObject* list = PyList_New(flat.inputs);
  for (std::int64_t n = 0; list && n < flat.inputs; ++n) {
    Py_IncRef(inputs[n]);
    PyList_SetItem(list, n, inputs[n]);
  }
  PyObject* outputs = list ? PyObject_Vectorcall(flat.otherwise, &list, 1, nullptr) : nullptr;
  Py_DecRef(list);
  return outputs;
}

// Run with gradients off, and leave them as they were, whatever comes of it.
PyObject* run_here(const Flat& flat, PyObject* const* inputs, std::intptr_t count) {
  if (count != flat.inputs)
    return PyErr_Format(PyExc_TypeError, "this graph takes %lld inputs, not %lld", (long long)flat.inputs,
                        (long long)count);
  if (!flat.gradients_on) return run_on_device(flat, inputs);
  PyObject* answer = PyObject_CallObject(flat.gradients_on, nullptr);
  if (!answer) return nullptr;
  const bool were_on = PyObject_IsTrue(answer);
  Py_DecRef(answer);
  if (!were_on) return run_on_device(flat, inputs);
  if (!set_gradients(flat, false)) return nullptr;
  PyObject* outputs = run_on_device(flat, inputs);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  set_gradients(flat, true);
  PyErr_Restore(type, value, traceback);
  return outputs;
}

// The graph as a function of its inputs. Dynamo, which calls it, must not follow into what is called from here.
PyObject* run_flat(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& flat = *static_cast<const Flat*>(PyCapsule_GetPointer(self, nullptr));
  PyObject* nothing = &_Py_NoneStruct;
  PyObject* before = PyObject_Vectorcall(flat.set_frames, &nothing, 1, nullptr);
  if (!before) return nullptr;
  PyObject* outputs = run_here(flat, arguments, count);
  if (before != nothing) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DecRef(PyObject_Vectorcall(flat.set_frames, &before, 1, nullptr));
    PyErr_Restore(type, value, traceback);
  }
  Py_DecRef(before);
  return outputs;
}

// The same as a function of one list of them.
PyObject* run_flat_boxed(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& flat = *static_cast<const Flat*>(PyCapsule_GetPointer(self, nullptr));
  if (count != 1) return PyErr_Format(PyExc_TypeError, "a graph is called with one list of its inputs");
  const std::intptr_t given = PyList_Size(arguments[0]);
  if (given < 0) return nullptr;
  PyObject* inputs[MOST_SLOTS];
  const std::intptr_t held = given < MOST_SLOTS ? given : MOST_SLOTS;
  for (std::intptr_t n = 0; n < held; ++n) Py_IncRef(inputs[n] = PyList_GetItem(arguments[0], n));
  PyObject* outputs = run_here(flat, inputs, given);
  for (std::intptr_t n = 0; n < held; ++n) Py_DecRef(inputs[n]);
  return outputs;
}

PyMethodDef flat_method{"call", run_flat, FASTCALL, nullptr};
PyMethodDef flat_boxed_method{"call_boxed", run_flat_boxed, FASTCALL, nullptr};

}  // namespace

extern "C" PyObject* flat_call(PyObject* owner, void* record) { return function_of(&flat_method, owner, record); }
extern "C" PyObject* flat_call_boxed(PyObject* owner, void* record) {
  return function_of(&flat_boxed_method, owner, record);
}
