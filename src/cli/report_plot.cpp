#include "cli/report_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"
#include "experiment/words.h"

namespace reckon::cli {
namespace {

// Pixels down; percent of the width across.
constexpr double kTop = 12;
constexpr double kHeight = 232;
constexpr double kBottom = 46;  // labels of the columns
constexpr double kLeft = 13;
constexpr double kRight = 99.5;

constexpr size_t kLabelledColumns = 6;  // more have no room for their values on a phone
constexpr size_t kDescribedRounds = 8;
constexpr double kFarOff = 2.5;  // times the largest effect: a line so far off would flatten it
constexpr double kSmallest = 0.0005;

std::string percent_text(double log) {
  return signed_share_text(std::expm1(log));
}

std::string tick_text(double log) {
  const double percent = std::expm1(log) * 100;
  if (std::fabs(percent) < 1e-9) return "0%";
  return std::fabs(percent) < 1000 ? fmt::format("{:+.3g}%", percent)
                                   : fmt::format("{:+.0f}%", percent);
}

struct Range {
  double low = 0;
  double high = 0;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool holds(double value) const { return value >= low && value <= high; }
};

Range range_of(const Plot& plot) {
  Range range;
  for (const PlotRound& round : plot.rounds) {
    range.include(round.log);
    for (const PlotPair& pair : round.pairs) range.include(pair.log);
  }
  if (plot.effect) range.include(*plot.effect);
  const double extent = std::max({-range.low, range.high, kSmallest});
  const auto include_near = [&](double value) {
    if (std::fabs(value) <= kFarOff * extent) range.include(value);
  };
  for (const auto& span : {plot.band, plot.interval}) {
    if (!span) continue;
    include_near(span->low);
    include_near(span->high);
  }
  if (plot.claim) include_near(*plot.claim);
  const double pad = std::max(range.high - range.low, kSmallest) * 0.07;
  return {range.low - pad, range.high + pad};
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot)
      : plot_(plot), range_(range_of(plot)), columns_(plot.rounds.size() + (plot.effect ? 1 : 0)) {}

  Html svg() {
    band();
    grid();
    for (size_t i = 0; i < plot_.rounds.size(); ++i) round(i);
    effect();
    const Html title = element("title", {{"id", "plot-title"}},
                               std::string_view("Pairs and rounds, arm against base, in percent"));
    const Html description = element("desc", {{"id", "plot-desc"}}, this->description());
    return element("svg",
                   {{"class", "plot"},
                    {"role", "img"},
                    {"aria-labelledby", "plot-title plot-desc"},
                    {"width", "100%"},
                    {"height", fmt::format("{:g}", kTop + kHeight + kBottom)}},
                   title + description + markup_);
  }

  [[nodiscard]] bool holds(double log) const { return range_.holds(log); }

 private:
  [[nodiscard]] double y(double log) const {
    const double share = (range_.high - log) / (range_.high - range_.low);
    return kTop + kHeight * std::clamp(share, 0.0, 1.0);
  }
  // The place of a part (0 to 1) of a column.
  [[nodiscard]] double x(size_t column, double part) const {
    return kLeft +
           (kRight - kLeft) * (static_cast<double>(column) + part) / static_cast<double>(columns_);
  }

  void line(const char* style, double x1, double y1, double x2, double y2) {
    markup_ += Html::raw(
        fmt::format(R"(<line class="{}" x1="{:.2f}%" y1="{:.1f}" x2="{:.2f}%" y2="{:.1f}"/>)",
                    style, x1, y1, x2, y2));
  }

  void label(const char* style, double x, double y, const std::string& text) {
    markup_ += element(
        "text",
        {{"class", style}, {"x", fmt::format("{:.2f}%", x)}, {"y", fmt::format("{:.1f}", y)}},
        text);
  }

  void band() {
    if (!plot_.band) return;
    const double top = y(plot_.band->high);
    markup_ += Html::raw(
        fmt::format(R"(<rect class="band" x="{:g}%" y="{:.1f}" width="{:g}%" height="{:.1f}"/>)",
                    kLeft, top, kRight - kLeft, std::max(1.0, y(plot_.band->low) - top)));
  }

  void grid() {
    for (const double tick : plot_ticks(range_.low, range_.high, 6)) {
      line(tick == 0 ? "zero" : "grid", kLeft, y(tick), kRight, y(tick));
      label("tick", kLeft - 1.5, y(tick) + 4, tick_text(tick));
    }
    if (plot_.claim && holds(*plot_.claim)) {
      line("claim", kLeft, y(*plot_.claim), kRight, y(*plot_.claim));
    }
  }

  void round(size_t index) {
    const PlotRound& round = plot_.rounds[index];
    if (index > 0) line("grid", x(index, 0), kTop, x(index, 0), kTop + kHeight);
    line(round.counted ? "round" : "round late", x(index, 0.1), y(round.log), x(index, 0.9),
         y(round.log));
    for (size_t i = 0; i < round.pairs.size(); ++i) pair(index, i);
    const size_t step = 1 + plot_.rounds.size() / 20;
    const std::string number = std::to_string(index + 1);
    if (columns_ > kLabelledColumns) {
      if (index % step == 0) label("column", x(index, 0.5), kTop + kHeight + 18, number);
      return;
    }
    label("column", x(index, 0.5), kTop + kHeight + 18, "round " + number);
    label("value", x(index, 0.5), kTop + kHeight + 36, percent_text(round.log));
  }

  void pair(size_t column, size_t index) {
    const PlotRound& round = plot_.rounds[column];
    const PlotPair& pair = round.pairs[index];
    const double part =
        0.15 + 0.7 * (static_cast<double>(index) + 0.5) / static_cast<double>(round.pairs.size());
    const double radius = columns_ > 24 ? 2 : columns_ > kLabelledColumns ? 3 : 4;
    const Html hint =
        element("title", fmt::format("round {}, pair {}: {}, {} first", column + 1, index + 1,
                                     percent_text(pair.log), pair.arm_first ? "arm" : "base"));
    markup_ += element("circle",
                       {{"class", pair.arm_first ? "pair hollow" : "pair"},
                        {"cx", fmt::format("{:.2f}%", x(column, part))},
                        {"cy", fmt::format("{:.1f}", y(pair.log))},
                        {"r", fmt::format("{:g}", radius)}},
                       hint);
  }

  void effect() {
    if (!plot_.effect) return;
    const size_t column = columns_ - 1;
    const double middle = x(column, 0.5);
    line("divide", x(column, 0), kTop, x(column, 0), kTop + kHeight);
    if (plot_.interval) {
      line("interval", middle, y(plot_.interval->low), middle, y(plot_.interval->high));
    }
    markup_ += Html::raw(fmt::format(
        R"(<svg class="mark" x="{:.2f}%" y="{:.1f}"><path class="effect" d="M0-7 7 0 0 7-7 0z"/></svg>)",
        middle, y(*plot_.effect)));
    label("column", middle, kTop + kHeight + 18, "all");
    if (columns_ <= kLabelledColumns) {
      label("value strong", middle, kTop + kHeight + 36, percent_text(*plot_.effect));
    }
  }

  [[nodiscard]] std::string description() const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(plot_.rounds.size(), kDescribedRounds); ++i) {
      const PlotRound& round = plot_.rounds[i];
      std::string part = fmt::format("round {}: {}", i + 1, percent_text(round.log));
      if (!round.pairs.empty()) {
        const auto [low, high] =
            std::minmax_element(round.pairs.begin(), round.pairs.end(),
                                [](const auto& a, const auto& b) { return a.log < b.log; });
        part += fmt::format(", {} from {} to {}",
                            counted(static_cast<int64_t>(round.pairs.size()), "pair"),
                            percent_text(low->log), percent_text(high->log));
      }
      parts.push_back(std::move(part));
    }
    if (plot_.rounds.size() > kDescribedRounds) {
      parts.push_back(fmt::format("and {} more rounds", plot_.rounds.size() - kDescribedRounds));
    }
    if (plot_.effect) parts.push_back("all rounds: " + percent_text(*plot_.effect));
    return join(parts, "; ");
  }

  const Plot& plot_;
  Range range_;
  size_t columns_;
  Html markup_;
};

Html symbol(const char* inside) {
  return Html::raw(fmt::format(
      R"(<svg class="key" width="22" height="14" aria-hidden="true">{}</svg>)", inside));
}

Html legend(const Plot& plot, const Drawing& drawing) {
  Html items;
  const auto item = [&](const char* inside, const std::string& text) {
    items += element("li", symbol(inside) + html_text(text));
  };
  const auto far = [&](double log) { return drawing.holds(log) ? "" : ", beyond the picture"; };
  const bool pairs = std::any_of(plot.rounds.begin(), plot.rounds.end(),
                                 [](const PlotRound& round) { return !round.pairs.empty(); });
  if (pairs) {
    item(R"(<circle class="pair" cx="11" cy="7" r="4"/>)", "a pair, base first");
    item(R"(<circle class="pair hollow" cx="11" cy="7" r="4"/>)", "a pair, arm first");
  }
  item(R"(<line class="round" x1="1" y1="7" x2="21" y2="7"/>)", "result of a round");
  if (std::any_of(plot.rounds.begin(), plot.rounds.end(),
                  [](const PlotRound& round) { return !round.counted; })) {
    item(R"(<line class="round late" x1="1" y1="7" x2="21" y2="7"/>)",
         "a round that the verdict does not count");
  }
  if (plot.effect) {
    const char* mark = R"(<line class="interval" x1="11" y1="0" x2="11" y2="14"/>)"
                       R"(<path class="effect" d="M11 2 16 7 11 12 6 7z"/>)";
    item(mark, plot.interval ? fmt::format("all rounds, 90% interval {} to {}",
                                           percent_text(plot.interval->low),
                                           percent_text(plot.interval->high))
                             : "all rounds");
  }
  if (plot.band) {
    item(R"(<rect class="band" x="1" y="1" width="20" height="12"/>)",
         "noise band " +
             experiment::band_text(std::expm1(plot.band->low), std::expm1(plot.band->high)) +
             far(std::max(-plot.band->low, plot.band->high)));
  }
  if (plot.claim) {
    item(R"(<line class="claim" x1="1" y1="7" x2="21" y2="7"/>)",
         "claim " + percent_text(*plot.claim) + far(*plot.claim));
  }
  return element("ul", {{"class", "legend"}}, items);
}

double nice_step(double width, int wanted) {
  const double rough = width / wanted;
  const double unit = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * unit >= rough) return factor * unit;
  }
  return 10 * unit;
}

// Ratios that people read well, as log units, within [low, high]: fewer of them in a wide range.
std::vector<double> ratio_ladder(double low, double high) {
  constexpr double kWide = 1.6;
  const std::vector<double> ratios = high - low > kWide
                                         ? std::vector<double>{1, 2, 5}
                                         : std::vector<double>{1, 1.2, 1.5, 2, 3, 4, 5, 7};
  std::vector<double> ladder;
  for (int decade = -6; decade <= 6; ++decade) {
    for (const double ratio : ratios) {
      const double log = std::log(ratio) + decade * std::log(10.0);
      if (log >= low && log <= high) ladder.push_back(decade == 0 && ratio == 1 ? 0 : log);
    }
  }
  return ladder;
}

std::vector<double> linear_ladder(double low, double high, int wanted) {
  const double from = std::expm1(low) * 100;
  const double to = std::expm1(high) * 100;
  const double step = nice_step(to - from, wanted);
  std::vector<double> ladder;
  for (double i = std::ceil(from / step); i * step <= to; ++i) {
    ladder.push_back(i == 0 ? 0 : std::log1p(i * step / 100));
  }
  return ladder;
}

// Those that stand far enough from the one before, from zero outwards.
void keep_apart(std::span<const double> ladder, double apart, std::vector<double>& kept) {
  double last = 0;
  for (const double value : ladder) {
    if (std::fabs(value - last) < apart) continue;
    kept.push_back(value);
    last = value;
  }
}

}  // namespace

std::vector<double> plot_ticks(double low, double high, int wanted) {
  constexpr double kNearlyLinear = 0.4;
  const std::vector<double> ladder =
      high - low < kNearlyLinear ? linear_ladder(low, high, wanted) : ratio_ladder(low, high);
  std::vector<double> up;
  std::vector<double> down;
  for (const double value : ladder) (value > 0 ? up : down).push_back(value);
  std::reverse(down.begin(), down.end());
  if (!down.empty() && down.front() == 0) down.erase(down.begin());
  const double apart = (high - low) / (2 * wanted);
  std::vector<double> ticks;
  if (low <= 0 && high >= 0) ticks.push_back(0);
  keep_apart(up, apart, ticks);
  keep_apart(down, apart, ticks);
  std::sort(ticks.begin(), ticks.end());
  return ticks;
}

Html plot_figure(const Plot& plot) {
  Drawing drawing(plot);
  Html caption = html_text("Arm against base, each pair and each round; above zero is better.");
  if (plot.warmups > 0) {
    caption += html_text(fmt::format(" {} not drawn; the table has {}.",
                                     counted(plot.warmups, "warm-up pair"),
                                     plot.warmups == 1 ? "it" : "them"));
  }
  Html figure = drawing.svg();
  figure += legend(plot, drawing);
  figure += element("figcaption", caption);
  return element("figure", figure);
}

}  // namespace reckon::cli
