// How the report looks, and the script of its search: constants.
#pragma once

#include <string_view>

namespace reckon::cli {

// One sheet for every page; in each of them, so that a page can be sent by itself.
extern const std::string_view kReportStyle;

// Of the index: search as one types, over search.js, which it loads when first asked. Every list
// and filter works without it.
extern const std::string_view kSearchScript;

}  // namespace reckon::cli
