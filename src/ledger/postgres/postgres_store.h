// The store of a team: one table of a PostgreSQL database, `reckon_events`, a row an event.
//
// The first append creates the table, so the database must exist and the role be allowed to;
// reading needs only SELECT. The lines are those of a JSON-lines ledger, checksums and all, so that
// verify means the same and either store can be merged into the other. A connection is made for
// each call. What waits on this machine (Store::local_folder) lies in
// <state folder>/ledgers/<a hash of the URL without its password>.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/store.h"

namespace reckon::ledger {

// postgres://… or postgresql://…, as libpq reads it.
[[nodiscard]] bool is_postgres_url(std::string_view location);

// The URL with its password, wherever it stands, replaced by "***": for people.
[[nodiscard]] std::string hidden_password(std::string_view url);

// The URL with no password in it: one that works where libpq finds the password elsewhere.
[[nodiscard]] std::string without_password(std::string_view url);

// Connects to nothing yet. Messages of the store never hold the password.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres_store(std::string_view url);

}  // namespace reckon::ledger
