// What every kernel of Fusionscope on a CPU is made of: functions of one element, written without branches so that the
// compiler turns a loop over them into vector instructions.
#pragma once

#include <algorithm>
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

namespace fs = fusionscope;
