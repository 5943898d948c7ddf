// The environment record of a measurement: what a colleague needs to know about the machine and
// the build beside the numbers. Readings that the system does not give are left out.
#pragma once

#include <nlohmann/json.hpp>

#include "kernels/device.h"

namespace reckon::adapters {

// {"device_name", "driver", "kernel", "compiler", "commit", "dirty", "readings": {text: text}}, as
// ledger::Environment reads it; ledger/facts.h has the numbers that conditions may name. Cheap
// enough for every round.
[[nodiscard]] nlohmann::json environment_record(const kernels::Device& device);

}  // namespace reckon::adapters
