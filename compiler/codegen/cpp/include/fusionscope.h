// What every kernel of Fusionscope on a CPU is made of: functions of one element, written without branches so that the
// compiler turns a loop over them into vector instructions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>

#include "arithmetic.h"
#include "elementary.h"
#include "float8.h"
#include "half.h"
#include "random.h"
#include "relative.h"
#include "trigonometry.h"
#include "turn.h"

namespace fs = fusionscope;

namespace fusionscope {
// The message of the first check that failed since `fusionscope_failed_check` was last asked, of this library's kernels.
static std::atomic<const char*> failed_check{nullptr};

static inline void check(bool holds, const char* message) {
  const char* none = nullptr;
  if (!holds) failed_check.compare_exchange_strong(none, message);
}
}  // namespace fusionscope

extern "C" const char* fusionscope_failed_check() { return fs::failed_check.exchange(nullptr); }
