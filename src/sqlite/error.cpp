#include "sqlite/error.h"

#include <sqlite3.h>

namespace stint::sqlite {

bool Error::is_constraint() const {
    return code() == SQLITE_CONSTRAINT;
}
bool Error::is_busy() const {
    return code() == SQLITE_BUSY || code() == SQLITE_LOCKED;
}
bool Error::is_data() const {
    return is_constraint() || code() == SQLITE_TOOBIG || code() == SQLITE_MISMATCH;
}
bool Error::is_interrupted() const {
    return code() == SQLITE_INTERRUPT;
}
bool Error::is_full() const {
    return code() == SQLITE_FULL;
}
bool Error::is_io() const {
    return code() == SQLITE_IOERR;
}
bool Error::is_corrupt() const {
    return code() == SQLITE_CORRUPT || code() == SQLITE_NOTADB;
}

}  // namespace stint::sqlite
