// What a round's parent and its child process say to each other: one JSON object a line.
//
//   parent -> child   the job      {"protocol":2,"runner":"reckon","workload":{…},"arms":[…]}
//   child  -> parent  ready        {"ready":2}
//   parent -> child   a request    {"arm":0,"sequence":7}
//   child  -> parent  the answer   {"sequence":7,"measurement":{…},"environment":{…}}
//                     or           {"sequence":7,"error":{"kind":"refused","message":"…"}}
//   parent -> child   a request    {"arm":1,"sequence":8,"quality":[5,7]}: the base arm's tokens
//   child  -> parent  the answer   {"sequence":8,"quality":{…},"environment":{…}}
//   the parent closes its end; the child ends with exit code 0.
//
// Encoding and decoding are pure. Decoders never trust their input: whatever is missing or of
// another type is a kFailed error that names the field.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/runner.h"

namespace reckon::experiment {

inline constexpr int kProtocolVersion = 2;
inline constexpr size_t kMaximumLineBytes = size_t{256} << 20;

struct RoundJob {
  Workload workload;
  std::vector<Arm> arms;  // requests name them by index
  std::string runner = "reckon";
};

struct RoundRequest {
  int64_t arm = 0;
  int64_t sequence = 0;  // counts the requests of one process from 0
  // Set: do not measure; compare what the arm predicts with arm 0, over these tokens that arm 0
  // generated.
  std::optional<std::vector<int32_t>> quality = std::nullopt;
};

struct RoundAnswer {
  int64_t sequence = 0;
  std::optional<Error> error;      // the runner's own; or:
  Measurement measurement;         // or:
  std::optional<Quality> quality;  // of a request for it
  nlohmann::json environment = nlohmann::json::object();
};

// Lines without their newline; always valid UTF-8 (other bytes are replaced).
[[nodiscard]] std::string encode_job(const RoundJob& job);
[[nodiscard]] std::string encode_ready();
[[nodiscard]] std::string encode_request(const RoundRequest& request);
[[nodiscard]] std::string encode_answer(const RoundAnswer& answer);

[[nodiscard]] Result<RoundJob> decode_job(std::string_view line);
[[nodiscard]] Status decode_ready(std::string_view line);
[[nodiscard]] Result<RoundRequest> decode_request(std::string_view line);
[[nodiscard]] Result<RoundAnswer> decode_answer(std::string_view line);

// The runner of a name.
using OpenRunner = std::function<Result<std::unique_ptr<Runner>>(const std::string& name)>;

// The child's side: serves one job over the two descriptors until in_fd ends, then returns ok.
// Nothing else may write to out_fd meanwhile. A runner's own error is answered and served on;
// errors here are a runner that cannot be opened, a broken pipe or a line that is not of this
// protocol.
[[nodiscard]] Status serve_round(const OpenRunner& open, int in_fd, int out_fd);

}  // namespace reckon::experiment
