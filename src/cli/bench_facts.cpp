#include "cli/bench_facts.h"

#include <unistd.h>

#include <algorithm>

#include "base/process.h"

namespace stint::cli {

namespace {

double InSeconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

constexpr double kMebi = 1024.0 * 1024.0;

template <class T>
base::OrderedJson OrNull(const std::optional<T>& value) {
    return value ? base::OrderedJson(*value) : base::OrderedJson(nullptr);
}

template <class T>
void AddTo(std::optional<T>& sum, const std::optional<T>& more) {
    if (!more) return;
    sum = sum.value_or(0) + *more;
}

}  // namespace

BenchFacts& BenchFacts::operator+=(const BenchFacts& other) {
    seconds += other.seconds;
    tasks += other.tasks;
    statements += other.statements;
    log_bytes += other.log_bytes;
    client_cpu += other.client_cpu;
    worker_cpu += other.worker_cpu;
    AddTo(server_cpu, other.server_cpu);
    worker_rss = std::max(worker_rss, other.worker_rss);
    client_rss = std::max(client_rss, other.client_rss);
    settled_tasks += other.settled_tasks;
    commits += other.commits;
    AddTo(syncs, other.syncs);
    return *this;
}

FactsTaker::Look FactsTaker::LookNow(const std::vector<pid_t>& workers) {
    Look look;
    look.at = base::SystemClock().Now();
    look.statements = node::StatementsTogether();
    for (pid_t worker : workers) look.worker_cpu += InSeconds(base::CpuOf(worker));
    look.own_cpu = InSeconds(base::CpuOf(getpid()));
    if (auto server = meter_.ServerCpu()) look.server_cpu = InSeconds(*server);
    look.work = meter_.Read();
    look.handled = node::HandledTogether();
    return look;
}

void FactsTaker::Begin(const std::vector<pid_t>& workers) {
    facts_ = {};
    begin_ = LookNow(workers);
    // What the look itself took is not part of what is measured.
    begin_.statements = node::StatementsTogether();
    begin_.at = base::SystemClock().Now();
}

void FactsTaker::End(const std::vector<pid_t>& workers, std::int64_t tasks) {
    Look end = LookNow(workers);
    facts_.seconds = InSeconds(end.at - begin_.at);
    facts_.tasks = tasks;
    facts_.statements = end.statements - begin_.statements;
    facts_.log_bytes = end.work.log_bytes - begin_.work.log_bytes;
    facts_.worker_cpu = end.worker_cpu - begin_.worker_cpu;
    facts_.client_cpu = facts_.worker_cpu + end.own_cpu - begin_.own_cpu;
    if (end.server_cpu && begin_.server_cpu) {
        facts_.server_cpu = *end.server_cpu - *begin_.server_cpu;
    }
    for (pid_t worker : workers) {
        facts_.worker_rss = std::max(facts_.worker_rss, base::PeakMemory(worker));
    }
    facts_.client_rss = base::PeakMemory(getpid());
    SetStoreWork(end.work);
}

void FactsTaker::SetStoreWork(const node::StoreWork& work) {
    auto handled = static_cast<std::int64_t>(node::HandledTogether() - begin_.handled);
    facts_.settled_tasks = std::max(facts_.tasks, handled);
    facts_.commits = work.commits - begin_.work.commits;
    if (work.syncs && begin_.work.syncs) facts_.syncs = *work.syncs - *begin_.work.syncs;
}

BenchFacts FactsTaker::Settle() {
    if (meter_.late()) SetStoreWork(meter_.Read());
    return facts_;
}

void AddFacts(base::OrderedJson& json, const BenchFacts& facts, const node::StoreMeter& meter) {
    auto tasks = static_cast<double>(std::max<std::int64_t>(facts.tasks, 1));
    auto settled = static_cast<double>(std::max<std::int64_t>(facts.settled_tasks, 1));
    std::optional<double> syncs_each;
    if (facts.syncs) syncs_each = static_cast<double>(*facts.syncs) / settled;
    json["commits"] = facts.commits;
    json["commits_per_task"] = static_cast<double>(facts.commits) / settled;
    json["fsyncs"] = OrNull(facts.syncs);
    json["fsyncs_per_task"] = OrNull(syncs_each);
    json["wal_bytes"] = facts.log_bytes;
    json["wal_bytes_per_task"] = static_cast<double>(facts.log_bytes) / tasks;
    json["statements"] = facts.statements;
    json["statements_per_task"] = static_cast<double>(facts.statements) / tasks;
    std::optional<double> worker_rss;  // none: no worker took part
    if (facts.worker_rss > 0) worker_rss = static_cast<double>(facts.worker_rss) / kMebi;
    json["worker_rss_mib"] = OrNull(worker_rss);
    json["client_rss_mib"] = static_cast<double>(facts.client_rss) / kMebi;
    json["client_cpu_s"] = facts.client_cpu;
    json["worker_cpu_s"] = facts.worker_cpu;
    json["server_cpu_s"] = OrNull(facts.server_cpu);
    if (!facts.server_cpu) json["server_cpu_why"] = meter.why_no_server_cpu();
    if (!facts.syncs) json["fsyncs_why"] = "this server does not tell";
}

}  // namespace stint::cli
