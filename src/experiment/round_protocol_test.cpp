#include "experiment/round_protocol.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "experiment/test_runner.h"

namespace reckon::experiment {
namespace {

using testing::HasSubstr;

RoundJob sample_job() {
  RoundJob job;
  job.workload = {"tiny", "decode", "two\nlines \xff", 5, 3, 64, "decode_tok_per_s"};
  job.arms = {{"base", {{"arm", "variant=v1"}}, std::nullopt},
              {"arm", {{"arm", "variant=v2"}}, uint64_t{1} << 63}};
  return job;
}

TEST(RoundProtocol, JobSurvives) {
  const std::string line = encode_job(sample_job());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<RoundJob> job = decode_job(line);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->workload.prompt, "two\nlines \xef\xbf\xbd");
  EXPECT_EQ(job->workload.generate_tokens, 3);
  ASSERT_EQ(job->arms.size(), 2u);
  EXPECT_FALSE(job->arms[0].memory_limit_bytes.has_value());
  EXPECT_EQ(job->arms[1].memory_limit_bytes, uint64_t{1} << 63);
  EXPECT_EQ(job->arms[1].switches.at("arm"), "variant=v2");
}

TEST(RoundProtocol, AProgramSurvives) {
  RoundJob job = sample_job();
  job.runner = "command";
  CommandWorkload& command = job.workload.command.emplace();
  command.command = {"./bench", "{x}"};
  command.env = {{"A", "b=c"}};
  command.metric = {"tok_s", "json:$.tok_s", "tok/s", true};
  command.dispatch_file = "log";
  command.inputs = {"data"};
  command.tags = {{"gpu", "none"}};
  command.timeout_seconds = 7;
  const Result<RoundJob> copy = decode_job(encode_job(job));
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy->runner, "command");
  ASSERT_TRUE(copy->workload.command.has_value());
  EXPECT_EQ(encode_command(*copy->workload.command), encode_command(command));
  EXPECT_FALSE(decode_job(encode_job(sample_job()))->workload.command.has_value());
}

TEST(RoundProtocol, AnswerSurvives) {
  RoundAnswer answer;
  answer.sequence = 7;
  Measurement measurement;
  measurement.broken = "exit code 3";
  measurement.metrics = {{"decode_tok_per_s", 0.1}};
  measurement.tokens = {1, -2, 3};
  measurement.margins = {0.25f, std::numeric_limits<float>::infinity()};
  measurement.observed = {{"decode", "matmul", "1x8", "v", "p", "h"}};
  measurement.peak_bytes = 1234;
  answer.measurement = measurement;
  answer.environment["load"] = 0.5;
  const Result<RoundAnswer> copy = decode_answer(encode_answer(answer));
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy->sequence, 7);
  EXPECT_EQ(copy->measurement.broken, "exit code 3");
  EXPECT_EQ(copy->measurement.metrics, measurement.metrics);
  EXPECT_EQ(copy->measurement.tokens, measurement.tokens);
  EXPECT_EQ(copy->measurement.margins[0], 0.25f);
  EXPECT_TRUE(std::isnan(copy->measurement.margins[1])) << "JSON has no infinity";
  EXPECT_EQ(copy->measurement.observed, measurement.observed);
  EXPECT_EQ(copy->measurement.peak_bytes, 1234u);
  EXPECT_EQ(copy->environment["load"], 0.5);
}

TEST(RoundProtocol, QualitySurvives) {
  const auto request = decode_request(encode_request({1, 4, std::vector<int32_t>{7, 8}}));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->arm, 1);
  EXPECT_EQ(request->quality, (std::vector<int32_t>{7, 8}));
  EXPECT_FALSE(decode_request(encode_request({0, 1, std::nullopt}))->quality.has_value());
  RoundAnswer answer;
  answer.quality = Quality{12, 0.5, 0.75, 11, 10.0, 10.5};
  const auto copy = decode_answer(encode_answer(answer));
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  ASSERT_TRUE(copy->quality.has_value());
  EXPECT_EQ(copy->quality->tokens, 12);
  EXPECT_EQ(copy->quality->mean_kl, 0.5);
  EXPECT_EQ(copy->quality->largest_kl, 0.75);
  EXPECT_EQ(copy->quality->top1_equal, 11);
  EXPECT_EQ(copy->quality->base_perplexity, 10.0);
  EXPECT_EQ(copy->quality->arm_perplexity, 10.5);
}

TEST(RoundProtocol, ErrorsSurviveWithTheirKind) {
  for (const Error& error : {failed("a"), usage_error("b"), refused("c")}) {
    RoundAnswer answer;
    answer.error = error;
    const Result<RoundAnswer> copy = decode_answer(encode_answer(answer));
    ASSERT_TRUE(copy.ok());
    EXPECT_EQ(copy->error->kind, error.kind);
    EXPECT_EQ(copy->error->message, error.message);
  }
}

TEST(RoundProtocol, DecodersNeverTrust) {
  for (const char* line : {"", "x", "{}", "[]", "null", "{\"sequence\":1}", "{\"sequence\":\"1\"}",
                           "{\"sequence\":1,\"measurement\":[]}",
                           "{\"sequence\":1,\"error\":{\"kind\":\"odd\",\"message\":\"\"}}"}) {
    EXPECT_FALSE(decode_answer(line).ok()) << line;
    EXPECT_FALSE(decode_job(line).ok()) << line;
    EXPECT_FALSE(decode_ready(line).ok()) << line;
  }
  EXPECT_FALSE(decode_request("{\"arm\":0}").ok());
  const std::string job = encode_job(sample_job());
  for (size_t i = 0; i < job.size(); ++i) EXPECT_FALSE(decode_job(job.substr(0, i)).ok());
  EXPECT_THAT(decode_request("{\"arm\":0}").error().message, HasSubstr("'sequence' is missing"));
}

// Runs serve_round on what `input` says and returns what it answered.
std::string serve(const std::string& input, bool expect_ok) {
  int to_child[2];
  int from_child[2];
  EXPECT_EQ(::pipe(to_child) | ::pipe(from_child), 0);
  EXPECT_EQ(::write(to_child[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(to_child[1]);
  const Status status = serve_round(open_fake_runner, to_child[0], from_child[1]);
  EXPECT_EQ(status.ok(), expect_ok) << (status.ok() ? "" : status.error().message);
  ::close(to_child[0]);
  ::close(from_child[1]);
  std::string output(65536, '\0');
  const ssize_t got = ::read(from_child[0], output.data(), output.size());
  output.resize(got > 0 ? static_cast<size_t>(got) : 0);
  ::close(from_child[0]);
  return output;
}

TEST(RoundProtocol, ServesAJob) {
  const std::string output = serve(encode_job(sample_job()) + "\n" + encode_request({1, 0}) + "\n" +
                                       encode_request({5, 1}) + "\n",
                                   true);
  const std::vector<std::string> lines = split(output, '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(decode_ready(lines[0]).ok());
  const Result<RoundAnswer> answer = decode_answer(lines[1]);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->measurement.tokens.size(), 3u);
  EXPECT_EQ(answer->environment["kernel"], "Test 1.0");
  const Result<RoundAnswer> wrong_arm = decode_answer(lines[2]);
  ASSERT_TRUE(wrong_arm.ok());
  EXPECT_THAT(wrong_arm->error->message, HasSubstr("no arm 5"));
}

TEST(RoundProtocol, ServingEndsWithAnErrorOnNonsense) {
  EXPECT_EQ(serve("", false), "");
  EXPECT_EQ(serve("nonsense\n", false), "");
  EXPECT_EQ(split(serve(encode_job(sample_job()) + "\nnonsense\n", false), '\n').size(), 2u);
}

}  // namespace
}  // namespace reckon::experiment
