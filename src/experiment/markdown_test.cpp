#include "experiment/markdown.h"

#include <gmock/gmock.h>

#include "experiment/test_support.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MarkdownTest : public LedgerTest {
 protected:
  QueueOutcome sample() {
    return run(queue_text(
        aa_experiment("floor", 20) +
        ab_experiment("faster|pipe", "variant=v2,speed=1.05,side=fancy", "    claim: \"+2%\"\n") +
        ab_experiment("wrong", "variant=v2,diverge=2") +
        ab_experiment("nothing", "variant=v1,speed=2") +
        ab_experiment("big", "variant=v2,bytes=5000", "    memory_limit: 2000B\n") +
        ab_experiment("failing", "variant=v2,lie=extra")));
  }
};

size_t columns(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

TEST_F(MarkdownTest, PageHoldsWhatAReviewerAsks) {
  const QueueOutcome outcome = sample();
  const std::string page = markdown_page(outcome);
  EXPECT_THAT(page, AllOf(HasSubstr("# Queue test\n"), HasSubstr("| faster\\|pipe | WON | +5.0% |"),
                          HasSubstr("## faster\\|pipe: WON"), HasSubstr("90% interval +"),
                          HasSubstr("Noise band: -"), HasSubstr("from 20 A/A rounds"),
                          HasSubstr("  - `decode matmul 1x64x64 q4_0 v2 @s1`"),
                          HasSubstr("Side effects, outside the reach:")));
  EXPECT_THAT(page,
              AllOf(HasSubstr("Tokens: 8, identical"), HasSubstr("Peak memory: base 1.0 kB"),
                    HasSubstr("Tokens differ first at 2: 14 in the base arm, 15 in the other"),
                    HasSubstr("Planned memory: base 1.0 kB"), HasSubstr("scratch: matmul"),
                    HasSubstr("Command: `reckon queue run test.yaml`, commit `0123abc`"),
                    HasSubstr("```yaml\nname: "), HasSubstr("## failing: failed"),
                    HasSubstr("Unfinished: no mechanism")));
  EXPECT_FALSE(page.ends_with("\n\n"));
}

TEST_F(MarkdownTest, ATableKeepsUnitsWhole) {
  const std::string first = ab_experiment("slower", "variant=v2,speed=0.95");
  const Outcome two = run_one(first);
  EXPECT_THAT(text_table(QueueOutcome{"q", {two}}),
              HasSubstr("  100.0 / 100.0 -> 95.00 / 95.00 tok/s  " + two.entry + "\n"));
  const Outcome four = run_one(first);
  ASSERT_EQ(four.record->rounds.size(), 4u) << four.text;
  EXPECT_THAT(text_table(QueueOutcome{"q", {four}}),
              HasSubstr("  100.0 / … -> 95.00 / … tok/s          " + four.entry + "\n"));
}

TEST_F(MarkdownTest, TablesFitAHundredColumns) {
  const QueueOutcome outcome = sample();
  const std::string table = text_table(outcome);
  EXPECT_THAT(table, AllOf(HasSubstr("faster|pipe"), HasSubstr("WON"), HasSubstr("OUT-OF-MEMORY"),
                           HasSubstr(outcome.experiments[1].entry)));
  const Result<Queue> queue =
      parse_queue(queue_text(ab_experiment(std::string(90, 'x'), "variant=v2") +
                             ab_experiment("wrong", "forbidden", "    idea2: x\n").substr(0, 0)),
                  "a/very/long/path/" + std::string(150, 'y'));
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  const std::string check = text_table(check_queue(*queue, runner_, *store_));
  for (const std::string& text : {table, check}) {
    for (const std::string& line : split(text, '\n')) {
      EXPECT_LE(columns(line), 100u) << line;
      EXPECT_FALSE(line.ends_with(" ")) << line;
    }
  }
}

TEST(Markdown, LongWordsAreBroken) {
  Outcome outcome;
  outcome.id = "ü" + std::string(50, 'u');
  outcome.text = "short " + std::string(250, 'z') + " end";
  const std::string table = text_table(QueueOutcome{"q", {outcome}});
  size_t letters = 0;
  for (const std::string& line : split(table, '\n')) {
    EXPECT_LE(columns(line), 100u);
    letters += static_cast<size_t>(std::count(line.begin(), line.end(), 'z'));
  }
  EXPECT_EQ(letters, 250u);
}

TEST_F(MarkdownTest, JsonHoldsTheWholeResult) {
  const nlohmann::json json = to_json(sample());
  EXPECT_EQ(json["queue"], "test");
  EXPECT_EQ(json["exit_code"], 1);
  ASSERT_EQ(json["experiments"].size(), 6u);
  EXPECT_EQ(json["experiments"][0]["kind"], "floor");
  EXPECT_EQ(json["experiments"][0]["floor"]["rounds"], 20);
  const nlohmann::json& won = json["experiments"][1];
  EXPECT_EQ(won["verdict"], "WON");
  EXPECT_EQ(won["rounds"].size(), 2u);
  EXPECT_TRUE(won["result"].contains("numbers"));
  EXPECT_EQ(json["experiments"][5]["error"], "failed");
}

TEST(Words, BandsAndDurations) {
  EXPECT_EQ(band_text(-0.00652, 0.00656), "±0.66%");
  EXPECT_EQ(log_band_text(0.049), "±5.0%");
  EXPECT_EQ(log_band_text(0.06), "-5.8% to +6.2%");
  EXPECT_EQ(log_band_text(0.0004), "±0.04%");
  EXPECT_EQ(log_band_text(0.15), "-13.9% to +16.2%");
  EXPECT_EQ(band_text(0, 0), "±0.0%");
  EXPECT_EQ(unknown_band_text(4), "not yet known: 4 of 20 A/A rounds");
  EXPECT_EQ(unknown_band_text(5), "");
  EXPECT_EQ(noise_source_text(1, 2), "1 A/A round");
  EXPECT_EQ(noise_source_text(20, 2), "20 A/A rounds");
  EXPECT_EQ(noise_source_text(20, 4),
            "20 A/A rounds or the scatter of its own rounds, whichever is larger");
  EXPECT_EQ(duration_text(0.84), "0.8 s");
  EXPECT_EQ(duration_text(45.2), "45 s");
  EXPECT_EQ(duration_text(720), "12 min");
  EXPECT_EQ(duration_text(5400), "1.5 h");
}

TEST(Words, DeviceKeySaysWhatTheHardwareHas) {
  EXPECT_EQ(device_key_text({"GenuineIntel", "avx512", 1, 15}), "avx512 hardware, 1 core, 15 GiB");
  EXPECT_EQ(device_key_text({"nvidia", "sm_90", 132, 0}), "sm_90, 132 SMs");
}

}  // namespace
}  // namespace reckon::experiment
