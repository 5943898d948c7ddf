// The picture of a comparison: for each round a column of its pairs, the round's result, and the
// noise band around zero, as inline SVG. Pure.
//
// Heights are log units (d > 0 is the better arm), labelled in percent. Across, everything is in
// percent of the width, so that one picture fits a phone and a desk without scaling its text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/report_html.h"

namespace reckon::cli {

struct PlotPair {
  double log = 0;
  bool arm_first = false;
};

struct PlotRound {
  std::vector<PlotPair> pairs;  // counted ones, in the order that they ran
  double log = 0;               // its result
  bool counted = true;          // in the verdict
};

struct Span {
  double low = 0;
  double high = 0;
};

struct Plot {
  std::vector<PlotRound> rounds;  // at least one
  std::optional<double> effect;   // log units, over all rounds
  std::optional<Span> interval;   // 90 %, log units, of the effect
  std::optional<Span> band;       // log units
  std::optional<double> claim;    // log units
  int warmups = 0;                // pairs that are not drawn
};

// With its legend, as a <figure>.
[[nodiscard]] Html plot_figure(const Plot& plot);

// Heights that are labelled within [low, high]: log units of round percents, ascending; about
// `wanted` of them and never closer than a part in twice as many.
[[nodiscard]] std::vector<double> plot_ticks(double low, double high, int wanted);

}  // namespace reckon::cli
