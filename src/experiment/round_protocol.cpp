#include "experiment/round_protocol.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "experiment/json_fields.h"
#include "experiment/row_json.h"

namespace reckon::experiment {
namespace {

using nlohmann::json;

const std::string kWhat = "round protocol";

struct KindName {
  ErrorKind kind;
  const char* name;
};
constexpr KindName kKinds[] = {{ErrorKind::kFailed, "failed"},
                               {ErrorKind::kUsage, "usage"},
                               {ErrorKind::kRefused, "refused"},
                               {ErrorKind::kUnsupported, "unsupported"}};

json encode_workload(const Workload& workload) {
  json object{{"model", workload.model},
              {"backend", workload.backend},
              {"quant", workload.quant},
              {"phase", workload.phase},
              {"prompt", workload.prompt},
              {"prompt_tokens", workload.prompt_tokens},
              {"generate_tokens", workload.generate_tokens},
              {"context", workload.context},
              {"metric", workload.metric}};
  if (workload.command) object["command"] = encode_command(*workload.command);
  return object;
}

Result<Workload> decode_workload(const json& object) {
  Workload workload;
  JsonFields fields(object, kWhat);
  fields.read("model", workload.model);
  fields.read("backend", workload.backend);
  fields.read("quant", workload.quant);
  fields.read("phase", workload.phase);
  fields.read("prompt", workload.prompt);
  fields.read("prompt_tokens", workload.prompt_tokens);
  fields.read("generate_tokens", workload.generate_tokens);
  fields.read("context", workload.context);
  fields.read("metric", workload.metric);
  TRY(fields.status());
  if (object.contains("command")) {
    TRY_ASSIGN(workload.command, decode_command(object["command"], kWhat));
  }
  return workload;
}

json encode_arm(const Arm& arm) {
  json object{{"name", arm.name}, {"switches", arm.switches}};
  if (arm.memory_limit_bytes) object["memory_limit_bytes"] = *arm.memory_limit_bytes;
  return object;
}

Result<Arm> decode_arm(const json& object) {
  Arm arm;
  JsonFields fields(object, kWhat);
  fields.read("name", arm.name);
  fields.read("switches", arm.switches);
  if (object.contains("memory_limit_bytes")) {
    fields.read("memory_limit_bytes", arm.memory_limit_bytes.emplace());
  }
  TRY(fields.status());
  return arm;
}

json encode_measurement(const Measurement& measurement) {
  json margins = json::array();
  for (const float margin : measurement.margins) {
    margins.push_back(std::isfinite(margin) ? json(margin) : json());
  }
  return {{"broken", measurement.broken},
          {"metrics", measurement.metrics},
          {"tokens", measurement.tokens},
          {"margins", std::move(margins)},
          {"observed", encode_rows(measurement.observed)},
          {"peak_bytes", measurement.peak_bytes},
          {"kernel_use", measurement.kernel_use}};
}

Result<Measurement> decode_measurement(const json& object) {
  Measurement measurement;
  std::vector<json> margins;
  json observed;
  JsonFields fields(object, kWhat);
  fields.read("broken", measurement.broken);
  fields.read("metrics", measurement.metrics);
  fields.read("tokens", measurement.tokens);
  fields.read("margins", margins);
  fields.read("observed", observed);
  fields.read("peak_bytes", measurement.peak_bytes);
  fields.read("kernel_use", measurement.kernel_use);
  TRY(fields.status());
  for (const json& margin : margins) {
    measurement.margins.push_back(margin.is_number() ? margin.get<float>()
                                                     : std::numeric_limits<float>::quiet_NaN());
  }
  TRY_ASSIGN(measurement.observed, decode_rows(observed, kWhat));
  return measurement;
}

json encode_quality(const Quality& quality) {
  json object{{"tokens", quality.tokens},
              {"mean_kl", quality.mean_kl},
              {"largest_kl", quality.largest_kl},
              {"top1_equal", quality.top1_equal}};
  if (quality.base_perplexity) object["base_perplexity"] = *quality.base_perplexity;
  if (quality.arm_perplexity) object["arm_perplexity"] = *quality.arm_perplexity;
  return object;
}

Status decode_quality(const json& object, Quality& quality) {
  JsonFields fields(object, kWhat);
  fields.read("tokens", quality.tokens);
  fields.read("mean_kl", quality.mean_kl);
  fields.read("largest_kl", quality.largest_kl);
  fields.read("top1_equal", quality.top1_equal);
  TRY(fields.status());
  if (object.contains("base_perplexity")) {
    fields.read("base_perplexity", quality.base_perplexity.emplace());
    fields.read("arm_perplexity", quality.arm_perplexity.emplace());
  }
  return fields.status();
}

Status decode_error(const json& object, Error& error) {
  std::string kind;
  JsonFields fields(object, kWhat);
  fields.read("kind", kind);
  fields.read("message", error.message);
  TRY(fields.status());
  for (const KindName& known : kKinds) {
    if (kind == known.name) {
      error.kind = known.kind;
      return {};
    }
  }
  return failed(kWhat + ": unknown kind of error");
}

}  // namespace

std::string encode_job(const RoundJob& job) {
  json arms = json::array();
  for (const Arm& arm : job.arms) arms.push_back(encode_arm(arm));
  return json_line({{"protocol", kProtocolVersion},
                    {"runner", job.runner},
                    {"workload", encode_workload(job.workload)},
                    {"arms", std::move(arms)}});
}

Result<RoundJob> decode_job(std::string_view line) {
  TRY_ASSIGN(const json object, parse_json(line, kWhat));
  RoundJob job;
  int protocol = 0;
  json workload;
  std::vector<json> arms;
  JsonFields fields(object, kWhat);
  fields.read("protocol", protocol);
  fields.read("runner", job.runner);
  fields.read("workload", workload);
  fields.read("arms", arms);
  TRY(fields.status());
  if (protocol != kProtocolVersion) return failed(kWhat + ": parent and child differ in version");
  TRY_ASSIGN(job.workload, decode_workload(workload));
  for (const json& arm : arms) {
    TRY_ASSIGN(Arm decoded, decode_arm(arm));
    job.arms.push_back(std::move(decoded));
  }
  return job;
}

std::string encode_ready() {
  return json_line({{"ready", kProtocolVersion}});
}

Status decode_ready(std::string_view line) {
  TRY_ASSIGN(const json object, parse_json(line, kWhat));
  int version = 0;
  JsonFields fields(object, kWhat);
  fields.read("ready", version);
  TRY(fields.status());
  if (version != kProtocolVersion) return failed(kWhat + ": parent and child differ in version");
  return {};
}

std::string encode_request(const RoundRequest& request) {
  json object{{"arm", request.arm}, {"sequence", request.sequence}};
  if (request.quality) object["quality"] = *request.quality;
  return json_line(object);
}

Result<RoundRequest> decode_request(std::string_view line) {
  TRY_ASSIGN(const json object, parse_json(line, kWhat));
  RoundRequest request;
  JsonFields fields(object, kWhat);
  fields.read("arm", request.arm);
  fields.read("sequence", request.sequence);
  TRY(fields.status());
  if (object.contains("quality")) fields.read("quality", request.quality.emplace());
  TRY(fields.status());
  return request;
}

std::string encode_answer(const RoundAnswer& answer) {
  json object{{"sequence", answer.sequence}};
  if (!answer.error) {
    if (answer.quality) {
      object["quality"] = encode_quality(*answer.quality);
    } else {
      object["measurement"] = encode_measurement(answer.measurement);
    }
    object["environment"] = answer.environment;
    return json_line(object);
  }
  const Error& error = *answer.error;
  for (const KindName& known : kKinds) {
    if (known.kind == error.kind) {
      object["error"] = {{"kind", known.name}, {"message", error.message}};
    }
  }
  return json_line(object);
}

Result<RoundAnswer> decode_answer(std::string_view line) {
  TRY_ASSIGN(const json object, parse_json(line, kWhat));
  RoundAnswer answer;
  json body;
  JsonFields fields(object, kWhat);
  fields.read("sequence", answer.sequence);
  const bool is_error = object.is_object() && object.contains("error");
  const bool is_quality = object.is_object() && object.contains("quality");
  fields.read(is_error ? "error" : is_quality ? "quality" : "measurement", body);
  fields.read_optional("environment", answer.environment);
  TRY(fields.status());
  if (is_error) {
    TRY(decode_error(body, answer.error.emplace()));
  } else if (is_quality) {
    TRY(decode_quality(body, answer.quality.emplace()));
  } else {
    TRY_ASSIGN(answer.measurement, decode_measurement(body));
  }
  if (!answer.environment.is_object()) return failed(kWhat + ": 'environment' must be an object");
  return answer;
}

}  // namespace reckon::experiment
