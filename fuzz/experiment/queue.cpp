// A queue file. Prompts that it names are looked for from the folder where the target runs.
#include "experiment/queue.h"

#include "fuzz/fuzz.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  (void)accepted(experiment::parse_queue(bytes, "input.yaml"));
}

}  // namespace reckon::fuzz
