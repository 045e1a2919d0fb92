#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/clock.h"
#include "base/random.h"
#include "conformance/fixture.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::conformance {

namespace {

// The file in a directory of its own, its owner in this process. Further handles speak through the
// owner's socket, as another process would.
class SqliteFixture final : public StoreFixture {
public:
    explicit SqliteFixture(bool through_socket) : through_socket_(through_socket) {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-conformance-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        owner_ = OpenOne(false);
    }
    ~SqliteFixture() override {
        owner_.reset();
        std::filesystem::remove_all(directory_);
    }

    std::shared_ptr<store::Store> Open() override {
        if (!through_socket_ && !opened_.exchange(true)) return owner_;
        return OpenOne(true);
    }
    void AdvanceTime(Duration by) override { clock_.Advance(by); }

private:
    std::shared_ptr<store::Store> OpenOne(bool force_client) {
        store::SqliteOptions options;
        options.path = directory_ + "/stint.db";
        options.clock = &clock_;
        options.sync = false;  // what reaches the disk is not the subject here
        options.force_client = force_client;
        return store::OpenSqliteStore(options);
    }

    const bool through_socket_;
    std::atomic<bool> opened_ = false;  // cases open from several threads
    base::ManualClock clock_;
    std::string directory_;
    std::shared_ptr<store::Store> owner_;
};

}  // namespace

std::vector<Backend> Backends() {
    return {
        {"sqlite", [] { return std::make_unique<SqliteFixture>(false); }},
        {"sqlitesocket", [] { return std::make_unique<SqliteFixture>(true); }},
    };
}

}  // namespace stint::conformance
