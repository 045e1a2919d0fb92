// The life of so many tasks, submitted one by one, claimed in batches, run and settled, on one
// thread of the engine and with time standing still, so that the same number of instructions is
// executed each time: what budget_test.py counts.
//
//   task_budget memory|sqlite TASKS
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/submit.h"
#include "engine/worker.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "wake/local.h"

namespace stint {
namespace {

constexpr int kBatch = 100;

class TemporaryFile {
public:
    TemporaryFile() {
        std::string pattern = (std::filesystem::temp_directory_path() / "stint-XXXXXX").string();
        CHECK(mkdtemp(pattern.data()) != nullptr);
        folder_ = pattern;
    }
    ~TemporaryFile() { std::filesystem::remove_all(folder_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    std::string path() const { return folder_ + "/stint.db"; }

private:
    std::string folder_;
};

void Live(store::Store& store, base::Clock& clock, base::Random& random, int tasks) {
    wake::LocalWake wake;
    engine::Registry registry;
    registry.Add({.type = "t", .defaults = {}, .handler = [](Context&, std::string_view input) {
                      return Outcome<std::string>(std::in_place_index<0>, std::string(input));
                  }});
    engine::WorkerOptions options;
    options.slots = kBatch;
    options.hostname = "here";
    engine::Metrics metrics;
    engine::Worker worker({store, wake, registry, clock, random, nullptr, &metrics}, options);
    engine::Submitter submitter(store, wake, clock, random, {}, &metrics);
    worker.Open();
    for (int done = 0; done < tasks; done += kBatch) {
        for (int i = 0; i < kBatch; ++i) {
            model::NewTask task;
            task.type = "t";
            task.input = R"({"n":1})";
            CHECK(submitter.Submit(std::move(task)).has_value());
        }
        worker.ClaimOnce();
        while (worker.RunOneAttempt()) {
        }
        worker.SettleOnce();
    }
    worker.Drain();
    CHECK(metrics.completed == static_cast<std::uint64_t>(tasks));
}

int Main(int argc, char** argv) {
    std::string_view kind = argc > 1 ? argv[1] : "";
    std::string_view number = argc > 2 ? argv[2] : "";
    int tasks = 0;
    std::from_chars(number.data(), number.data() + number.size(), tasks);
    if ((kind != "memory" && kind != "sqlite") || tasks <= 0 || tasks % kBatch != 0) {
        fmt::print(stderr, "usage: task_budget memory|sqlite TASKS, a multiple of {}\n", kBatch);
        return 2;
    }
    base::ManualClock clock;
    base::SeededRandom random(7);
    if (kind == "memory") {
        base::SeededRandom store_random(8);
        store::MemoryStore store(clock, store_random);
        Live(store, clock, random, tasks);
        return 0;
    }
    TemporaryFile file;
    store::SqliteOptions options;
    options.path = file.path();
    Live(*store::OpenSqliteStore(options), clock, random, tasks);
    return 0;
}

}  // namespace
}  // namespace stint

int main(int argc, char** argv) {
    return stint::Main(argc, argv);
}
