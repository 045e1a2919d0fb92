// Steps: every night the sources are read side by side; when all of them are done, whatever became
// of each, the report is made of what there is, and then sent. One source does not answer tonight.
#include <stint/stint.h>

#include <iostream>
#include <map>
#include <mutex>

inline constexpr stint::Task<std::string, int> kRead{
    "source.read", {.retry = stint::Retry::Times(1)}};
inline constexpr stint::Task<void, std::string> kReport{"report.make"};
inline constexpr stint::Task<void, void> kSend{"report.send"};

namespace {

// The host's own database, so to speak.
class Warehouse {
public:
    void Put(const std::string& source, int rows) {
        std::lock_guard guard(mutex_);
        rows_[source] = rows;
    }
    std::string Report() {
        std::lock_guard guard(mutex_);
        std::string report;
        for (const auto& [source, rows] : rows_) {
            report += source + " " + std::to_string(rows) + "; ";
        }
        return report;
    }

private:
    std::mutex mutex_;
    std::map<std::string, int> rows_;  // guarded by mutex_
};

}  // namespace

int main() {
    Warehouse warehouse;
    stint::Engine engine({.store = "sqlite:nightly.db"});
    engine.Handle(kRead, [&](stint::Context&, const std::string& source) {
        if (source == "fax") throw stint::Permanent("nobody picks up");
        int rows = static_cast<int>(source.size()) * 100;
        warehouse.Put(source, rows);
        return rows;
    });
    engine.Handle(kReport, [&](stint::Context&) {
        std::cout << "report: " << warehouse.Report() << std::endl;
        return warehouse.Report();
    });
    engine.Handle(kSend, [](stint::Context&) { std::cout << "sent" << std::endl; });
    engine.Start();

    // [steps]
    stint::ScheduleStep read{
        .name = "read",
        .tasks = {Later(kRead, "crm"), Later(kRead, "fax"), Later(kRead, "shop")},
        .on_failure = stint::ScheduleStep::OnFailure::kContinue};
    stint::ScheduleStep report{.name = "report", .tasks = {Later(kReport)}};
    stint::ScheduleStep send{.name = "send", .tasks = {Later(kSend)}};
    stint::Schedules schedules = engine.schedules();
    schedules
        .PutSteps("nightly", stint::when::Cron{"30 2 * * *", "Europe/Berlin"}, {read, report, send})
        .value();
    // [steps]

    stint::TaskId execution = schedules.RunNow("nightly").value();  // we do not wait for the night
    constexpr stint::Task<stint::Json, stint::Json> kAny{"stint.steps"};
    std::cout << engine.Find(kAny, execution).Wait().value().text << '\n';
    stint::ScheduleRunInfo run = schedules.Runs("nightly").value().front();
    std::cout << run.state << (engine.Get(execution).value().warning ? ", with a warning\n" : "\n");
    engine.Stop();
}
