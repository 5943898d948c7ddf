// The tables of the index. A change here wants another kIndexVersion (refresh.h).
#pragma once

namespace reckon::ledger::sqlite {

inline constexpr const char* kDropTables = R"(
DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS events; DROP TABLE IF EXISTS writers;
DROP TABLE IF EXISTS problems; DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS conditions;
DROP TABLE IF EXISTS warnings;
)";

inline constexpr const char* kCreateTables = R"(
-- stamp: inode, size and times when it was read; '' where they say nothing yet. covered: the bytes
-- that were indexed, of `lines` line ends and with this hash. ended: 0 where a last line without its
-- newline was taken as it was.
CREATE TABLE files(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, stamp TEXT NOT NULL,
  covered INTEGER NOT NULL, hash TEXT NOT NULL, lines INTEGER NOT NULL, ended INTEGER NOT NULL);
-- reached: the latest time of the writer up to there, by which events are ordered. round: of a
-- measured event, else ''.
CREATE TABLE events(id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL,
  offset INTEGER NOT NULL, length INTEGER NOT NULL, sum TEXT NOT NULL, entry TEXT NOT NULL,
  creates INTEGER NOT NULL, writer TEXT NOT NULL, reached TEXT NOT NULL, round TEXT NOT NULL);
CREATE UNIQUE INDEX events_sum ON events(sum);
CREATE INDEX events_entry ON events(entry);
CREATE INDEX events_round ON events(round) WHERE round != '';
CREATE TABLE writers(name TEXT PRIMARY KEY, reached TEXT NOT NULL, last_file TEXT NOT NULL);
CREATE TABLE problems(file INTEGER NOT NULL, torn INTEGER NOT NULL, text TEXT NOT NULL);
-- place: sorts as the fold orders entries. noise_id: noise_id(). scope: flat_scope().
CREATE TABLE entries(id TEXT PRIMARY KEY, place TEXT NOT NULL, scope_id TEXT NOT NULL,
  noise_id TEXT NOT NULL, scope TEXT NOT NULL, kind INTEGER, verdict INTEGER, effect REAL, metric TEXT, switch TEXT,
  base TEXT, arm TEXT, model TEXT, family TEXT, device TEXT, vendor TEXT, isa TEXT, idea TEXT,
  rounds INTEGER, imported INTEGER, status INTEGER, superseded_by TEXT, lever_entry TEXT,
  created TEXT, updated TEXT, writer TEXT);
CREATE INDEX entries_place ON entries(place);
CREATE INDEX entries_scope ON entries(scope_id);
CREATE INDEX entries_noise ON entries(noise_id);
CREATE INDEX entries_switch ON entries(switch);
-- open_conditions() of each entry.
CREATE TABLE conditions(entry TEXT NOT NULL, predicate TEXT NOT NULL);
CREATE INDEX conditions_entry ON conditions(entry);
CREATE TABLE warnings(entry TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX warnings_entry ON warnings(entry);
)";

}  // namespace reckon::ledger::sqlite
