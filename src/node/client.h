// Client: what the doors (command line, later the API) may ask of a store. They know neither the
// store's interface nor its exceptions: an environment that fails is one exception with a code.
#pragma once

#include <stint/engine.h>
#include <stint/ids.h>
#include <stint/log.h>
#include <stint/result.h>
#include <stint/time.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "model/task.h"
#include "node/event_client.h"
#include "node/flow_client.h"
#include "node/idle.h"
#include "node/result_client.h"
#include "node/why.h"
#include "services/schedule_desk.h"
#include "store/store.h"

namespace stint::node {

// The store cannot be opened or reached (kUnavailable), its schema is not ours (kConflict), or the
// answer was lost on the way (kUnknown).
class StoreError : public std::runtime_error {
public:
    StoreError(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    Code code() const { return code_; }

private:
    Code code_;
};

// The words of the store that the doors share.
using services::ApplyRequest;
using services::ApplyStep;
using services::BackfillReport;
using services::BackfillRequest;
using services::RunSeen;
using services::ScheduleDesk;
using store::AuditRequest;
using store::CancelReply;
using store::CheckFinding;
using store::ClaimRequest;
using store::Explanation;
using store::FinishedTask;
using store::ListRequest;
using store::RetryReply;
using store::RunsRequest;
using store::StoreInfo;
using store::SubmitReply;
using store::VisitsRequest;

class ResourceClient;  // node/resource_client.h

class Client {
public:
    enum class IfMissing : std::uint8_t {
        kCreate,  // a new store is made; .stint/ with it
        kRefuse,  // a SQLite file that is not there is an error: looking must not make one
    };
    // Throws StoreError. Refuses memory:, which nobody else could ever see.
    static Client Open(const std::string& url, IfMissing if_missing, LogSink log = {});
    // Shares the store of an engine, which outlives it.
    static Client Of(Engine& engine);
    ~Client();
    Client(Client&&) noexcept;

    const std::string& url() const;
    StoreInfo Info();
    Time Now();

    // Before the first submit: ids are reserved many at once, as an engine does. The rest of them
    // is lost at the end.
    void ExpectManySubmits();
    // In transactions of at most limits::kSubmitBatch; one answer each, in order. Each error is the
    // task's own: refused, the store cannot be reached, or the answer was lost (engine::Submitter).
    std::vector<Result<SubmitReply>> Submit(std::span<const model::NewTask> tasks);
    std::vector<CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    );
    std::vector<RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor);
    std::vector<RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor);
    Result<void> Edit(TaskId task, const model::TaskEdit& edit, std::string_view actor);

    std::optional<model::TaskRecord> Get(TaskId task);
    model::TaskPage List(const ListRequest& request);
    std::map<model::CountKey, std::int64_t> Counts(const model::TaskFilter& filter);
    std::vector<model::AttemptRecord> Attempts(TaskId task);
    std::vector<model::AuditEntry> Audit(const AuditRequest& request);
    // All entries of one task, oldest first.
    std::vector<model::AuditEntry> AuditOf(TaskId task);

    // Waits until all are terminal, the time is over (nullopt = no limit) or `stop` is requested.
    // `finished` is called for each as it is seen. Returns those that are not terminal yet.
    std::vector<TaskId> Wait(
        std::vector<TaskId> tasks,
        std::optional<Duration> limit,
        const std::function<void(const FinishedTask&)>& finished,
        std::stop_token stop = {}
    );

    std::vector<model::TypeRecord> Types();
    std::vector<model::QueueRecord> Queues();
    // Changes only what is given. The settings afterwards; nullopt: there is no such queue, and
    // none was to be made.
    std::optional<model::QueueSettings> ChangeQueue(
        const model::QueueChange& change, std::string_view actor
    );
    std::vector<model::SessionRecord> Sessions();
    std::vector<model::NodeRecord> Nodes();
    // Why a worker like this one would not claim the task now; kEligible alone: it would.
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer);
    std::vector<CheckFinding> Check();

    // Asks the desk of schedules: client.Schedules([](node::ScheduleDesk& desk) { … }).
    template <class Question>
    auto Schedules(Question question) {
        std::optional<std::invoke_result_t<Question, ScheduleDesk&>> answer;
        WithDesk([&](ScheduleDesk& desk) { answer.emplace(question(desk)); });
        return std::move(*answer);
    }

    // Events and workflows; not longer than this client.
    EventClient Events();
    FlowClient Flows();
    // Items and deletions; not longer than this client.
    ResultClient Results();

    // Resources; not longer than this client.
    ResourceClient Resources();

    // Why a task is not running, or the waiting ones of a queue, with what would change it.
    std::optional<Why> WhyTask(TaskId task);
    QueueWhy WhyQueue(const std::string& queue);

    // Whether a worker of these queues, types (none = all) and labels has anything to do.
    IdleLook LookIdle(const ClaimRequest& worker);

private:
    Client();
    void WithDesk(const std::function<void(ScheduleDesk&)>& question);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// ---- whole stores ------------------------------------------------------------------------------

// Brings the schema up to date, or with dry_run only says how: the scripts, in order. Throws
// StoreError.
std::vector<std::string> Migrate(const std::string& url, bool dry_run, LogSink log = {});

// The file of a sqlite: address; nullopt for other stores.
std::optional<std::string> SqlitePath(std::string_view url);

// Makes the .stint directory of a SQLite address, with a .gitignore, if it is one and missing.
void PrepareStoreDirectory(std::string_view url);

}  // namespace stint::node
