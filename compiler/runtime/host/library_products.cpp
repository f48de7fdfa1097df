// Products of matrices in cuBLASLt (compiler/runtime/host/library_products.py), launched without what torch finds out anew at
// every call.
//
// Compiled as one text with launcher.cpp, which stands before it and declares what this uses of Python. The library
// counts columns first: a matrix whose rows lie one after the other is its own transpose to it, so that it is asked for
// transposed(result) = transposed(right) transposed(left).

namespace {

// Functions without arguments that tell torch's settings, and what each must tell for a call to be as prepared.
struct Settings {
  std::int64_t count;
  PyObject* const* tell;
  PyObject* const* expected;

  // 1 where they are so, 0 where they are not, -1 with Python's error set.
  int hold() const {
    for (std::int64_t n = 0; n < count; ++n) {
      PyObject* told = PyObject_CallObject(tell[n], nullptr);
      if (!told) return -1;
      const int is_same = told == expected[n] ? 1 : PyObject_RichCompareBool(told, expected[n], EQUAL);
      Py_DecRef(told);
      if (is_same != 1) return is_same;
    }
    return 1;
  }
};

constexpr int MOST_TENSORS = 4;  // a bias, left, right, result

struct LibraryProduct {
  Address address;
  Settings settings;
  int (*describe)(void** description, int computed_in, int scaled_in);                     // cublasLtMatmulDescCreate
  int (*forget)(void* description);                                                        // cublasLtMatmulDescDestroy
  int (*set)(void* description, int attribute, const void* value, std::size_t bytes);  // cublasLtMatmulDescSetAttribute
  int (*multiply)(void* handle, void* description, const void* alpha, const void* a, void* layout_a, const void* b,
                  void* layout_b, const void* beta, const void* c, void* layout_c, void* d, void* layout_d,
                  const void* algorithm, void* workspace, std::size_t workspace_bytes, void* stream);  // cublasLtMatmul
  void *handle, *right, *left, *result;  // the layouts
  const void* algorithm;                 // null until one is chosen
  std::int64_t tensors;
  std::int64_t alignment[MOST_TENSORS];  // of what it was chosen for
  std::int64_t offset[MOST_TENSORS];     // in bytes, from where each tensor starts
  std::int64_t left_transposed, right_transposed, computed_in, epilogue;
  std::int64_t workspace_bytes, workspace_stream, workspace;
  PyObject* stream_of;  // a function of the device's number
  PyObject* device_number;
  PyObject* otherwise;  // a function of all arguments, for every call that is not as prepared

  int launch(const std::int64_t* at, void* stream) const {
    constexpr int FLOAT = 0, TRANSPOSED_A = 3, TRANSPOSED_B = 4, EPILOGUE = 7, BIAS_POINTER = 8;  // of cublasLt.h
    const float one = 1, none = 0;
    const std::int32_t transposed_a = right_transposed, transposed_b = left_transposed, kind = epilogue;
    const std::int64_t* matrices = at + tensors - 3;
    const auto address = [&](int n) { return reinterpret_cast<void*>(matrices[n]); };
    // One for each call, as it holds the bias's address and other threads may call at the same time.
    void* description = nullptr;
    if (const int failed = describe(&description, computed_in, FLOAT)) return failed;
    int failed = set(description, TRANSPOSED_A, &transposed_a, sizeof transposed_a);
    failed |= set(description, TRANSPOSED_B, &transposed_b, sizeof transposed_b);
    failed |= set(description, EPILOGUE, &kind, sizeof kind);
    if (matrices != at) failed |= set(description, BIAS_POINTER, at, sizeof *at);
    if (!failed)
      failed = multiply(handle, description, &one, address(1), right, address(0), left, &none, address(2), result,
                        address(2), result, algorithm, reinterpret_cast<void*>(workspace), workspace_bytes, stream);
    forget(description);
    return failed;
  }
};

// The arguments are the bias where there is one, left, right, result.
PyObject* launch_product(PyObject* self, PyObject* const* arguments, std::intptr_t count) {
  const auto& product = *static_cast<const LibraryProduct*>(PyCapsule_GetPointer(self, nullptr));
  const auto otherwise = [&] { return PyObject_Vectorcall(product.otherwise, arguments, count, nullptr); };
  if (!product.algorithm) return otherwise();
  std::int64_t at[MOST_TENSORS];
  if (!read(product.address, product.tensors, 0, arguments, count, at)) return nullptr;
  for (int n = 0; n < count; ++n)
    if ((at[n] += product.offset[n]) % product.alignment[n]) return otherwise();
  const int is_as_prepared = product.settings.hold();
  if (is_as_prepared < 0) return nullptr;
  PyObject* number = PyObject_Vectorcall(product.stream_of, &product.device_number, 1, nullptr);
  if (!number) return nullptr;
  const std::int64_t stream = PyLong_AsLongLong(number);
  Py_DecRef(number);
  if (!is_as_prepared || (product.workspace_bytes && product.workspace_stream != stream)) return otherwise();
  const LibraryProduct now = product;  // other threads may prepare it for another stream while the library works
  PyThreadState* state = PyEval_SaveThread();  // the driver waits where its queue is full
  const int failed = now.launch(at, reinterpret_cast<void*>(stream));
  PyEval_RestoreThread(state);
  return failed ? otherwise() : none();
}

PyMethodDef product_method{"multiply", launch_product, FASTCALL, nullptr};

}  // namespace

extern "C" PyObject* library_product(PyObject* owner, void* record) {
  return function_of(&product_method, owner, record);
}
