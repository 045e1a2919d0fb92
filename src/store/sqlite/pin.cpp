#include "store/sqlite/pin.h"

#include "sqlite/error.h"
#include "store/store.h"

namespace stint::store {

SqlitePin::SqlitePin(const std::string& path) try
    : connection_(path, {.role = sqlite::OpenOptions::Role::kReader}), view_(connection_) {
    connection_.Pragma("schema_version");  // the first look decides what is seen from now on
} catch (const sqlite::Error& error) {
    throw Unavailable(error.what());
}

}  // namespace stint::store
