// From a call in Python to a kernel's launch, without what is the same at every call.
//
// `cpu_launcher` and `gpu_launcher` make a builtin function of tensors and then sizes, all by position. It reads each
// tensor's address, each size's value, and calls the kernel: nothing is looked up, and no Python runs in between. What
// it needs is in a record that Python fills (compiler/runtime/host/launcher.py) and keeps as it was declared here.
//
// Python's functions are declared and not included, so that no header of Python's need be installed; all of them are
// in its stable interface.
#include <cstdint>
#include <cstring>
#include <utility>

extern "C" {
struct PyObject;
struct PyThreadState;
using Function = PyObject* (*)(PyObject* self, PyObject* const* arguments, std::intptr_t count);
struct PyMethodDef {
  const char* name;
  Function function;
  int flags;
  const char* documentation;
};
extern PyObject _Py_NoneStruct;
extern PyObject* PyExc_TypeError;
extern PyObject* PyExc_RuntimeError;
extern PyObject* PyExc_ValueError;
PyObject* PyErr_Occurred();
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback);
void PyErr_Restore(PyObject* type, PyObject* value, PyObject* traceback);
int PyObject_IsTrue(PyObject*);
int PyObject_RichCompareBool(PyObject*, PyObject*, int comparison);
PyObject* PyErr_Format(PyObject* type, const char* format, ...);
long long PyLong_AsLongLong(PyObject*);
PyObject* PyBool_FromLong(long);
std::intptr_t PyList_Size(PyObject*);
PyObject* PyList_GetItem(PyObject*, std::intptr_t);
std::intptr_t PySequence_Size(PyObject*);
PyObject* PySequence_GetItem(PyObject*, std::intptr_t);
PyObject* PyList_New(std::intptr_t);
int PyList_SetItem(PyObject*, std::intptr_t, PyObject* taken);
PyObject* PyObject_CallObject(PyObject* callable, PyObject* arguments);
PyObject* PyObject_Vectorcall(PyObject* callable, PyObject* const* arguments, std::size_t count, PyObject* names);
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
PyObject* PyCapsule_New(void* pointer, const char* name, void (*destructor)(PyObject*));
void* PyCapsule_GetPointer(PyObject*, const char* name);
int PyCapsule_SetContext(PyObject*, void*);
void* PyCapsule_GetContext(PyObject*);
PyThreadState* PyEval_SaveThread();
void PyEval_RestoreThread(PyThreadState*);
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
}

namespace {

constexpr int FASTCALL = 0x80;       // METH_FASTCALL
constexpr int EQUAL = 2;             // Py_EQ
constexpr int MOST_ARGUMENTS = 64;   // as in launcher.py
constexpr int MOST_DESCRIPTORS = 8;  // likewise

// The address of a tensor's first element; throws for what is no tensor.
using Address = void* (*)(PyObject* tensor);

PyObject* none() {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

// Tensors' addresses and sizes' values, in the order of the arguments. False with Python's error set where one is
// neither, or where there are more or fewer.
bool read(Address address, std::int64_t tensors, std::int64_t sizes, PyObject* const* arguments, std::intptr_t count,
          std::int64_t* values) {
  if (count != tensors + sizes) {
    PyErr_Format(PyExc_TypeError, "this kernel takes %lld arguments, not %lld", (long long)(tensors + sizes),
                 (long long)count);
    return false;
  }
  try {
    for (std::int64_t n = 0; n < tensors; ++n) values[n] = reinterpret_cast<std::int64_t>(address(arguments[n]));
  } catch (...) {
    PyErr_Format(PyExc_TypeError,
                 "a kernel got an argument that is no tensor with memory: within torch.vmap, and of gradients with "
                 "is_grads_batched=True, differentiate the function that is not compiled");
    return false;
  }
  for (std::int64_t n = tensors; n < count; ++n) {
    values[n] = PyLong_AsLongLong(arguments[n]);
    if (values[n] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

struct CpuKernel {
  void* function;
  Address address;
  std::int64_t tensors, sizes;
  PyObject* threads;            // torch.get_num_threads; null where the kernel has no parallel loop
  void (*set_threads)(int);     // of the OpenMP that the kernel is linked with
};

// Addresses and 64-bit integers are passed alike on every machine that this runs on, so that one call does for all
// kernels with as many arguments.
template <std::size_t... indices>
void call(void* function, const std::int64_t* values, std::index_sequence<indices...>) {
  reinterpret_cast<void (*)(decltype(values[indices] + 0)...)>(function)(values[indices]...);
}

template <std::size_t count>
void call_with(void* function, const std::int64_t* values) {
  call(function, values, std::make_index_sequence<count>());
}

using Call = void (*)(void* function, const std::int64_t* values);

template <std::size_t... counts>
Call call_of(std::size_t count, std::index_sequence<counts...>) {
  static constexpr Call calls[] = {call_with<counts>...};
  return calls[count];
}

PyObject* launch_on_cpu(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto* kernel = static_cast<const CpuKernel*>(PyCapsule_GetPointer(self, nullptr));
  std::int64_t values[MOST_ARGUMENTS];
  if (!read(kernel->address, kernel->tensors, kernel->sizes, arguments, count, values)) return nullptr;
  if (kernel->threads) {
    PyObject* threads = PyObject_CallObject(kernel->threads, nullptr);
    if (!threads) return nullptr;
    kernel->set_threads(static_cast<int>(PyLong_AsLongLong(threads)));
    Py_DecRef(threads);
  }
  const Call call = call_of(count, std::make_index_sequence<MOST_ARGUMENTS + 1>());
  PyThreadState* state = PyEval_SaveThread();
  call(kernel->function, values);
  PyEval_RestoreThread(state);
  return none();
}

using LaunchKernel = int (*)(void* function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                             unsigned block_z, unsigned shared_bytes, void* stream, void** parameters, void** extra);

using EncodeTensorMap = int (*)(void* map, int element, std::uint32_t rank, void* address, const std::uint64_t* sizes,
                                const std::uint64_t* byte_strides, const std::uint32_t* copied,
                                const std::uint32_t* element_strides, int interleave, int swizzle, int promotion,
                                int fill);

constexpr int MAP_BYTES = 128, MAP_ALIGNMENT = 64;  // of a CUtensorMap
constexpr int PROMOTE_TO_LINES = 2;                 // CU_TENSOR_MAP_L2_PROMOTION_L2_128B

// An argument that tells where a matrix lies and which tiles of it are asked for. The map is made anew whenever the
// matrix is at another address than in the launch before.
struct Descriptor {
  unsigned char map[MAP_BYTES];
  std::int64_t tensor;                // which of the arguments
  std::int64_t address;               // that the map was made for; 0 before the first
  std::int64_t lines, elements;       // of the matrix: the lines, and the elements of each
  std::int64_t stride, element_size;  // elements from one line to the next, bytes of an element
  std::int64_t copied_lines, copied_elements;
  std::int64_t element, swizzle;      // CUtensorMapDataType, CUtensorMapSwizzle
  // What Triton takes behind every descriptor, and does not look at.
  std::int32_t sizes[2];
  std::int64_t strides[2];
};

int describe(Descriptor& one, std::int64_t address, EncodeTensorMap encode) {
  alignas(MAP_ALIGNMENT) unsigned char map[MAP_BYTES];
  const std::uint64_t sizes[] = {std::uint64_t(one.elements), std::uint64_t(one.lines)};
  const std::uint64_t byte_strides[] = {std::uint64_t(one.stride * one.element_size)};
  const std::uint32_t copied[] = {std::uint32_t(one.copied_elements), std::uint32_t(one.copied_lines)};
  const std::uint32_t each[] = {1, 1};
  const int failed = encode(map, int(one.element), 2, reinterpret_cast<void*>(address), sizes, byte_strides, copied, each,
                            0, int(one.swizzle), PROMOTE_TO_LINES, 0);
  if (failed) return failed;
  std::memcpy(one.map, map, MAP_BYTES);
  one.address = address;
  return 0;
}

struct GpuKernel {
  void* function;               // CUfunction; null until the kernel is compiled and loaded
  Address address;
  std::int64_t tensors, sizes;
  LaunchKernel launch;          // cuLaunchKernel
  int (*device)(int*);          // cuCtxGetDevice
  std::int64_t on_device;       // where the function is loaded
  std::int64_t grid;            // programs of a launch, or -1: ask `grid_of`, a function of the sizes
  std::int64_t block, shared_bytes;
  std::int64_t has_workspace;
  std::int64_t workspace_stream;  // whose workspace and counters these two are
  std::int64_t workspace, counters;
  PyObject* grid_of;
  PyObject* stream_of;          // a function of the device's number
  PyObject* device_number;
  PyObject* otherwise;          // a function of all arguments, for every launch that is not as those before
  std::int64_t described;       // how many arguments are descriptors, in the order of the arguments
  Descriptor* descriptors;
  EncodeTensorMap encode;       // cuTensorMapEncodeTiled
};

constexpr std::int64_t ALIGNMENT = 16;  // as in triton_launch.py

bool is_32_bits(std::int64_t value) { return value == static_cast<std::int32_t>(value); }

PyObject* launch_on_gpu(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto* kernel = static_cast<const GpuKernel*>(PyCapsule_GetPointer(self, nullptr));
  const auto otherwise = [&] { return PyObject_Vectorcall(kernel->otherwise, arguments, count, nullptr); };
  int device = -1;
  if (!kernel->function || kernel->device(&device) != 0 || device != kernel->on_device) return otherwise();
  std::int64_t values[MOST_ARGUMENTS];
  if (!read(kernel->address, kernel->tensors, kernel->sizes, arguments, count, values)) return nullptr;
  std::int64_t together = 0;
  for (std::int64_t n = 0; n < kernel->tensors; ++n) together |= values[n];
  if (together % ALIGNMENT) return otherwise();
  for (std::int64_t n = kernel->tensors; n < count; ++n)
    if (!is_32_bits(values[n])) return otherwise();

  std::int64_t grid = kernel->grid;
  if (grid < 0) {
    PyObject* programs = PyObject_Vectorcall(kernel->grid_of, arguments + kernel->tensors, kernel->sizes, nullptr);
    if (!programs) return nullptr;
    grid = PyLong_AsLongLong(programs);
    Py_DecRef(programs);
  }
  if (grid == 0) return none();
  PyObject* number = PyObject_Vectorcall(kernel->stream_of, &kernel->device_number, 1, nullptr);
  if (!number) return nullptr;
  std::int64_t stream = PyLong_AsLongLong(number);
  Py_DecRef(number);
  if (kernel->has_workspace && kernel->workspace_stream != stream) return otherwise();

  // Tensors, the workspace, sizes, and two addresses that Triton adds to every kernel, for memory that ours never want.
  void* parameters[MOST_ARGUMENTS + 4 + 4 * MOST_DESCRIPTORS];
  void** next = parameters;
  std::int64_t workspace[] = {kernel->workspace, kernel->counters};
  void* nothing = nullptr;
  Descriptor *descriptor = kernel->descriptors, *const end = descriptor + kernel->described;
  for (std::int64_t n = 0; n < kernel->tensors; ++n) {
    if (descriptor == end || descriptor->tensor != n) {
      *next++ = &values[n];
      continue;
    }
    if (const int failed = descriptor->address == values[n] ? 0 : describe(*descriptor, values[n], kernel->encode))
      return PyErr_Format(PyExc_RuntimeError, "cuTensorMapEncodeTiled failed with CUDA's error %d", failed);
    *next++ = descriptor->map;
    for (int axis = 0; axis < 2; ++axis) *next++ = &descriptor->sizes[axis];
    for (int axis = 0; axis < 2; ++axis) *next++ = &descriptor->strides[axis];
    ++descriptor;
  }
  if (kernel->has_workspace) *next++ = &workspace[0], *next++ = &workspace[1];
  for (std::int64_t n = kernel->tensors; n < count; ++n) *next++ = &values[n];
  *next++ = &nothing;
  *next++ = &nothing;
  PyThreadState* state = PyEval_SaveThread();  // the driver waits where its queue is full
  const int failed = kernel->launch(kernel->function, grid, 1, 1, kernel->block, 1, 1, kernel->shared_bytes,
                                    reinterpret_cast<void*>(stream), parameters, nullptr);
  PyEval_RestoreThread(state);
  if (failed) return PyErr_Format(PyExc_RuntimeError, "cuLaunchKernel failed with CUDA's error %d", failed);
  return none();
}

struct Addresses {
  Address address;
  std::int64_t count;
  const std::int64_t* expected;  // 0 where any will do
};

// Whether the tensors of a list are where they are expected.
PyObject* are_there(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto* known = static_cast<const Addresses*>(PyCapsule_GetPointer(self, nullptr));
  if (count != 1 || PyList_Size(arguments[0]) != known->count)
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "this test takes one list of the inputs");
  try {
    for (std::int64_t n = 0; n < known->count; ++n)
      if (known->expected[n] &&
          reinterpret_cast<std::int64_t>(known->address(PyList_GetItem(arguments[0], n))) != known->expected[n])
        return PyBool_FromLong(0);
  } catch (...) {
    return PyErr_Format(PyExc_TypeError, "an input is no tensor with memory");
  }
  return PyBool_FromLong(1);
}

PyMethodDef addresses_method{"are_there", are_there, FASTCALL, nullptr};
PyMethodDef cpu_method{"launch", launch_on_cpu, FASTCALL, nullptr};
PyMethodDef gpu_method{"launch", launch_on_gpu, FASTCALL, nullptr};

// The function lives as long as whoever holds it, and the record, with what it refers to, as long as the function.
PyObject* function_of(PyMethodDef* method, PyObject* owner, void* record) {
  PyObject* capsule = PyCapsule_New(record, nullptr, [](PyObject* dying) {
    Py_DecRef(static_cast<PyObject*>(PyCapsule_GetContext(dying)));
  });
  if (!capsule) return nullptr;
  Py_IncRef(owner);
  PyCapsule_SetContext(capsule, owner);
  PyObject* function = PyCFunction_NewEx(method, capsule, nullptr);
  Py_DecRef(capsule);
  return function;
}

}  // namespace

extern "C" PyObject* cpu_launcher(PyObject* owner, void* record) { return function_of(&cpu_method, owner, record); }
extern "C" PyObject* gpu_launcher(PyObject* owner, void* record) { return function_of(&gpu_method, owner, record); }
extern "C" PyObject* address_test(PyObject* owner, void* record) {
  return function_of(&addresses_method, owner, record);
}
