// A consistent view of the file for one question.
#pragma once

#include "sqlite/transaction.h"
#include "store/sqlite/reads.h"

namespace stint::store::lite {

class Reads::View {
public:
    explicit View(Reads& reads) : transaction_(reads.db_) { reads.periods_.Refresh(reads.db_); }

private:
    sqlite::ReadTransaction transaction_;
};

}  // namespace stint::store::lite
