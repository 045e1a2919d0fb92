#include "evidence.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/limits.h"
#include "model/steps.h"

namespace stint::chaos {

namespace {

void ReadLine(const std::string& line, Journals& journals, Findings& findings) {
    std::istringstream words(line);
    std::string what, key;
    std::int64_t number = 0;
    if (!(words >> what >> key >> number)) return;
    if (what == "accepted") journals.accepted[key] = number;
    if (what == "end") journals.ended[key].insert(number);
    if (what == "start") {
        ++journals.starts;
        if (!journals.started.emplace(key, number).second) {
            findings.Add("{}: claim {} was started twice (I4, I5)", key, number);
        }
    }
    if (what == "gather" && !journals.gathered.emplace(key, number).second) {
        findings.Add("{}: claim {} resumed twice (I9)", key, number);
    }
    if (what == "effect" || what == "saw") {
        FlowJournal::Line entry{.claim = number, .step = {}, .value = {}};
        words >> entry.step >> entry.value;
        auto& flow = journals.flows[key];
        (what == "saw" ? flow.saw : flow.effects).push_back(std::move(entry));
    }
}

}  // namespace

Journals ReadJournals(const char* directory, Findings& findings) {
    Journals journals;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) ReadLine(line, journals, findings);
    }
    return journals;
}

Evidence::Evidence(store::Store& opened, const char* directory, Findings& findings)
    : store(opened), journals(ReadJournals(directory, findings)) {
    ReadTasks();
    ReadAudit();
}

void Evidence::ReadTasks() {
    store::ListRequest request;
    request.limit = model::limits::kListPage;
    for (bool more = true; more;) {
        auto page = store.List(request);
        for (model::TaskRecord& task : page.tasks) tasks.emplace(task.id, std::move(task));
        request.before = page.next;
        more = page.next.has_value();
    }
    for (const auto& [id, task] : tasks) {
        by_type_[task.type].push_back(&task);
        if (task.parent.valid()) children_[task.parent].push_back(&task);
    }
}

void Evidence::ReadAudit() {
    store::AuditRequest request;
    request.limit = model::limits::kListPage;
    while (true) {
        auto page = store.Audit(request);
        if (page.empty()) break;
        request.after = page.back().seq;
        for (model::AuditEntry& entry : page) {
            audit_[entry.task].push_back(entry);
            log.push_back(std::move(entry));
        }
    }
}

const model::TaskRecord* Evidence::Find(std::int64_t task) const {
    auto found = tasks.find(TaskId(task));
    return found == tasks.end() ? nullptr : &found->second;
}

namespace {
template <class Map, class Key>
const typename Map::mapped_type& OrEmpty(const Map& map, const Key& key) {
    static const typename Map::mapped_type kEmpty;
    auto found = map.find(key);
    return found == map.end() ? kEmpty : found->second;
}
}  // namespace

const Evidence::Tasks& Evidence::OfType(std::string_view type) const {
    return OrEmpty(by_type_, type);
}
const Evidence::Tasks& Evidence::ChildrenOf(TaskId task) const {
    return OrEmpty(children_, task);
}
const std::vector<model::AuditEntry>& Evidence::AuditOf(TaskId task) const {
    return OrEmpty(audit_, task);
}

bool Evidence::Quarantined(const model::TaskRecord& task) const {
    return task.state == model::State::kDead && task.reason.starts_with("quarantined: ");
}
bool Evidence::AnyQuarantined(const Tasks& some) const {
    for (const model::TaskRecord* task : some) {
        if (Quarantined(*task)) return true;
    }
    return false;
}

std::vector<std::pair<std::string, std::int64_t>> Evidence::Accepted(Kind kind) const {
    std::string prefix = fmt::format("{}-", KindName(kind));
    std::vector<std::pair<std::string, std::int64_t>> found;
    for (const auto& [key, number] : journals.accepted) {
        if (key.starts_with(prefix)) found.emplace_back(key, number);
    }
    return found;
}

bool IsCompleteExecution(const model::TaskRecord& task) {
    return task.type == model::kStepsType && task.state == model::State::kComplete;
}

}  // namespace stint::chaos
