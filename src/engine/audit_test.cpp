// What `--audit-buffers` finds: nothing in a plain run, and everything that was planted. On the
// CPU, and on a GPU where the build and the machine have one.
#include "engine/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

std::vector<std::string> names_of(const AuditReport& report) {
  std::vector<std::string> names;
  for (const UnreadBuffer& buffer : report.unread) names.push_back(buffer.name);
  return names;
}

std::unique_ptr<Session> audited_session(const LoadedModel& model, kernels::BufferAudit& audit,
                                         const Assignments& assignments = {},
                                         std::span<const kernels::Variant> variants = {}) {
  SessionOptions options;
  options.switches = switches_of(assignments);
  options.variants = variants;
  options.audit = &audit;
  auto session = Session::create(model, options);
  if (!session.ok()) {
    ADD_FAILURE() << session.error().message;
    return nullptr;
  }
  return std::move(session).value();
}

// A prefill, two decodes, and the tokens picked after each: what `reckon run` does.
void generate_some(Session& session, const std::vector<int32_t>& prompt) {
  ASSERT_TRUE(session.append(prompt).ok());
  ASSERT_TRUE(session.pick({}).ok());
  for (const int32_t token : {1, 2}) {
    ASSERT_TRUE(session.append(token).ok());
    ASSERT_TRUE(session.pick({}).ok());
  }
}

bool ran(Session& session, std::string_view op) {
  return std::ranges::any_of(session.trace().rows(), [&](const kernels::TraceCount& counted) {
    return counted.row.op == op;
  });
}

// ---- on the CPU ----

class Audit : public ::testing::TestWithParam<std::string> {};

TEST_P(Audit, APlainRunReadsEveryBuffer) {
  for (const char* quant : {"none", "q4"}) {
    for (const Assignments& assignments : {Assignments{}, Assignments{"numerics=reference"},
                                           Assignments{"cpu.isa=scalar", "prefill.chunk=7"}}) {
      ModelOptions model_options;
      model_options.quant = *models::QuantScheme::parse(quant);
      model_options.layouts.session = switches_of(assignments);
      const auto model = open_model(golden_path(GetParam()), model_options);
      ASSERT_NE(model, nullptr);
      kernels::BufferAudit audit;
      const auto session = audited_session(*model, audit, assignments);
      ASSERT_NE(session, nullptr);
      generate_some(*session, longest_prompt(*model));
      const AuditReport report = audit_report(audit);
      if (assignments.empty()) {
        EXPECT_THAT(names_of(report), IsEmpty()) << quant;
      } else {  // kernels that read rows leave the panels of a file's rows unread
        EXPECT_THAT(names_of(report), Each(EndsWith(" in panels"))) << quant;
      }
      // Nothing was left out: the weights one by one, and every buffer of the arenas.
      const ArenaSet& arenas = session->arenas();
      EXPECT_EQ(report.bytes, model->model().info().weight_bytes + arenas.total_bytes() -
                                  arenas.bytes(MemoryTag::kWeights))
          << quant;
      const auto in_both = std::ranges::count_if(model->weights(), [](const auto& weight) {
        return weight.panel_bytes > 0 && weight.panel_bytes < weight.bytes;
      });
      const auto others = std::ranges::count_if(
          arenas.terms(), [](const MemoryTerm& term) { return term.tag != MemoryTag::kWeights; });
      EXPECT_EQ(report.buffers, static_cast<int64_t>(model->weights().size()) + in_both + others);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Audit, ::testing::ValuesIn(oracle_models()), test_name);

class AuditFinds : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(model_, nullptr);
    prompt_ = longest_prompt(*model_);
  }
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("oracle/llama-s0"));
  std::vector<int32_t> prompt_;
  kernels::BufferAudit audit_;
};

TEST_F(AuditFinds, APlantedBuffer) {
  ArenaSet arenas;
  const auto planted = arenas.allocate(MemoryTag::kActivations, "planted", 4096);
  ASSERT_TRUE(planted.ok());
  const auto session = audited_session(*model_, audit_);
  ASSERT_NE(session, nullptr);
  audit_.watch(MemoryTag::kActivations, "planted", *planted, 4096);
  generate_some(*session, prompt_);
  const AuditReport report = audit_report(audit_);
  ASSERT_THAT(names_of(report), ElementsAre("planted"));
  EXPECT_EQ(report.unread[0].tag, MemoryTag::kActivations);
  EXPECT_EQ(report.unread[0].bytes, 4096U);
  EXPECT_EQ(report.unread[0].reason, "no op read or wrote it");
}

TEST_F(AuditFinds, EverythingWhereNothingRan) {
  const auto session = audited_session(*model_, audit_);
  ASSERT_NE(session, nullptr);
  const AuditReport report = audit_report(audit_);
  EXPECT_EQ(report.unread.size(), static_cast<size_t>(report.buffers));
  for (const char* name : {"model.layers.0.mlp.up_proj.weight", "keys", "logits", "scratch"}) {
    EXPECT_THAT(names_of(report), Contains(name));
  }
  const auto bytes = [](const UnreadBuffer& buffer) { return buffer.bytes; };
  EXPECT_TRUE(std::ranges::is_sorted(report.unread, std::greater<>(), bytes));
}

TEST_F(AuditFinds, LogitsThatNobodyLooksAt) {
  const auto session = audited_session(*model_, audit_);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->append(prompt_).ok());
  const AuditReport report = audit_report(audit_);
  ASSERT_THAT(names_of(report), ElementsAre("logits"));
  EXPECT_EQ(report.unread[0].reason, "written, but never read");
  ASSERT_TRUE(session->decode(1).ok());  // which gives them to the caller
  EXPECT_THAT(names_of(audit_report(audit_)), IsEmpty());
}

constexpr char kFused[] = "fused_for_a_test";

void fused_mlp(const kernels::MatmulSwigluArgs& args, kernels::KernelContext& context) {
  kernels::stamp(context, kFused, "feedfacecafebeef", args);
  std::fill(args.out, args.out + args.rows * args.n, 0.0F);
}

// The model's buffer for what a fused kernel keeps to itself is neither planned nor allocated.
TEST_F(AuditFinds, NothingWhereAFusedKernelMakesABufferNeedless) {
  const auto table = kernels::all_variants();
  std::vector<kernels::Variant> variants(table.begin(), table.end());
  variants.push_back({.op = kernels::Op::kMatmulSwiglu,
                      .name = kFused,
                      .function = &fused_mlp,
                      .source_hash = "feedfacecafebeef"});
  const auto session = audited_session(*model_, audit_, {"numerics=reference"}, variants);
  ASSERT_NE(session, nullptr);
  generate_some(*session, prompt_);
  ASSERT_TRUE(ran(*session, "matmul_swiglu"));
  EXPECT_THAT(names_of(audit_report(audit_)), IsEmpty());
  const auto has_mlp_up = [](const Session& any) {
    return std::ranges::find(any.plan().terms, "mlp up", &MemoryTerm::name) !=
           any.plan().terms.end();
  };
  EXPECT_FALSE(has_mlp_up(*session));
  const auto with_parts = make_session(*model_, {"numerics=reference"}, {});
  ASSERT_NE(with_parts, nullptr);
  EXPECT_TRUE(has_mlp_up(*with_parts));
}

// ---- on a GPU ----

kernels::Backend* cuda_or_null(std::string& why) {
  const auto backend = kernels::open_backend("cuda");
  if (backend.ok()) return *backend;
  why = backend.error().message;
  return nullptr;
}

// Graphs are captured at the first decode and replayed at the second.
TEST(CudaAudit, FindsWhatWasPlanted) {
  std::string missing;
  kernels::Backend* const gpu = cuda_or_null(missing);
  if (gpu == nullptr) GTEST_SKIP() << missing;
  ModelOptions model_options;
  model_options.backend = gpu;
  model_options.quant = *models::QuantScheme::parse("q4");
  const auto model = open_model(golden_path("oracle/llama-s0"), model_options);
  ASSERT_NE(model, nullptr);
  const Assignments parts{"kernel.matmul_group=parts", "kernel.matmul_swiglu=parts",
                          "kernel.rope_attention=parts", "kernel.add_rms_norm=parts"};
  for (const Assignments& assignments :
       {Assignments{}, parts, Assignments{"decode.graph=off"}, Assignments{"numerics=reference"}}) {
    ArenaSet arenas(gpu->memory());
    const auto planted = arenas.allocate(MemoryTag::kActivations, "planted", 4096);
    ASSERT_TRUE(planted.ok());
    kernels::BufferAudit audit;
    const auto session = audited_session(*model, audit, assignments);
    ASSERT_NE(session, nullptr);
    audit.watch(MemoryTag::kActivations, "planted", *planted, 4096);
    generate_some(*session, longest_prompt(*model));
    std::vector<std::string> unread = names_of(audit_report(audit));
    EXPECT_THAT(unread, Contains("planted"));
    // Scratch is made for the largest chunk, and a short prompt may do without.
    std::erase(unread, "scratch");
    EXPECT_THAT(unread, ElementsAre("planted"));
  }
}

}  // namespace
}  // namespace reckon::engine
