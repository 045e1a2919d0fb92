// Counts what SQLite asks of the disk, for measurements.
#pragma once

namespace stint::sqlite {

// Databases that this process opens from now on count their syncs, and what they write to their
// write-ahead logs, in base::ProcessTallies(). Once, before any is open.
void CountFileWork();

}  // namespace stint::sqlite
