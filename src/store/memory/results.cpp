#include "store/memory/results.h"

#include <algorithm>

#include "base/planted_bug.h"
#include "base/result.h"
#include "store/result_rules.h"

namespace stint::store::memory {

bool Ops::IsHeld(const Held& held) {
    Task* task = Find(held.task);
    if (task == nullptr || task->record.state != State::kInProgress) return false;
    if (base::Planted(base::Bug::kResultsUnfenced)) return true;
    return held.token.valid() && task->token == held.token;
}

std::optional<ItemCounts> ResultDoor::Write(const ResultWrite& write) {
    return Do([&](Ops& ops, ResultData& data) -> std::optional<ItemCounts> {
        if (!ops.IsHeld(write.by)) return std::nullopt;
        TaskResult& result = data.of[write.by.task];
        for (const ItemResult& item : write.items) {
            auto [there, fresh] = result.items.try_emplace(item.key);
            if (!fresh && !there->second.item.error.empty()) --result.counts.errors;
            there->second = {item, write.claim_no, ops.now()};
            result.counts.total += fresh ? 1 : 0;
            result.counts.errors += item.error.empty() ? 0 : 1;
        }
        if (write.checkpoint) result.checkpoint = {*write.checkpoint, write.claim_no, ops.now()};
        return result.counts;
    });
}

ResultSummary ResultDoor::Summary(TaskId task) {
    return Do([&](Ops&, ResultData& data) -> ResultSummary {
        auto found = data.of.find(task);
        if (found == data.of.end()) return {};
        return {found->second.counts, found->second.checkpoint};
    });
}

std::vector<ItemRecord> ResultDoor::Items(const ItemsRequest& request) {
    return Do([&](Ops&, ResultData& data) {
        std::vector<ItemRecord> page;
        auto found = data.of.find(request.task);
        if (found == data.of.end()) return page;
        const auto& items = found->second.items;
        for (auto it = items.upper_bound(request.after); it != items.end(); ++it) {
            if (static_cast<int>(page.size()) >= request.limit) break;
            if (request.errors_only && it->second.item.error.empty()) continue;
            page.push_back(it->second);
        }
        return page;
    });
}

// ---- deletions ---------------------------------------------------------------------------------

namespace {

DeletionName NameOf(TenantId tenant, std::string_view kind, std::string_view key) {
    return {tenant, std::string(kind), std::string(key)};
}

// When it may be taken, or taken again.
Time DueAt(const DeletionRow& row) {
    bool marked = row.deletion.state == DeletionState::kMarked;
    return marked ? row.deletion.delete_at : row.changed_at + limits::kDeletionTaken;
}

std::vector<DeletionRow*> Due(
    ResultData& data, Time now, const std::function<bool(const Deletion&)>& wanted
) {
    std::vector<DeletionRow*> due;
    for (auto& [name, row] : data.deletions) {
        if (wanted(row.deletion) && DueAt(row) <= now) due.push_back(&row);
    }
    std::ranges::sort(due, {}, [](const DeletionRow* row) {
        return std::pair(DueAt(*row), row->deletion.id);
    });
    return due;
}

// As many of them as may be; returns how many.
std::size_t Take(const std::vector<DeletionRow*>& due, int most, Time now, TakeReply& reply) {
    std::size_t count = std::min(due.size(), static_cast<std::size_t>(std::max(0, most)));
    for (std::size_t i = 0; i < count; ++i) {
        due[i]->deletion.state = DeletionState::kTaken;
        due[i]->changed_at = now;
        reply.deletions.push_back(due[i]->deletion);
    }
    return count;
}

}  // namespace

Deletion ResultDoor::MarkDeletion(const NewDeletion& deletion) {
    return Do([&](Ops& ops, ResultData& data) {
        DeletionRow& row = data.deletions[NameOf(deletion.tenant, deletion.kind, deletion.key)];
        Deletion& mark = row.deletion;
        bool over = mark.state == DeletionState::kBegun && mark.id == deletion.replaces;
        if (mark.id.valid() && !over) return mark;
        mark = MarkOf(deletion, DeletionId(data.next_deletion++), ops.now());
        data.paces.try_emplace(
            {deletion.tenant, deletion.kind},
            PaceRow{{.tenant = deletion.tenant, .kind = deletion.kind}, ops.now()}
        );
        return mark;
    });
}

Result<Deletion> ResultDoor::Unmark(TenantId tenant, std::string_view kind, std::string_view key) {
    return Do([&](Ops&, ResultData& data) -> Result<Deletion> {
        auto found = data.deletions.find(NameOf(tenant, kind, key));
        if (found == data.deletions.end()) return NotMarked(kind, key);
        Deletion deletion = found->second.deletion;
        if (deletion.state != DeletionState::kMarked) return HasBegun(deletion);
        data.deletions.erase(found);
        return deletion;
    });
}

std::optional<Deletion> ResultDoor::FindDeletion(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Do([&](Ops&, ResultData& data) -> std::optional<Deletion> {
        auto found = data.deletions.find(NameOf(tenant, kind, key));
        if (found == data.deletions.end()) return std::nullopt;
        return found->second.deletion;
    });
}

std::vector<Deletion> ResultDoor::Deletions(const DeletionsRequest& request) {
    return Do([&](Ops&, ResultData& data) {
        std::vector<Deletion> page;
        DeletionName after{request.after_tenant, request.after_kind, request.after_key};
        for (auto it = data.deletions.upper_bound(after); it != data.deletions.end(); ++it) {
            if (static_cast<int>(page.size()) >= request.limit) break;
            const Deletion& deletion = it->second.deletion;
            if (request.tenant && deletion.tenant != *request.tenant) continue;
            if (!request.kind.empty() && deletion.kind != request.kind) continue;
            page.push_back(deletion);
        }
        return page;
    });
}

TakeReply ResultDoor::TakeDeletions(int limit) {
    return Do([&](Ops& ops, ResultData& data) {
        const Time now = ops.now();
        std::erase_if(data.deletions, [&](const auto& item) {
            const DeletionRow& row = item.second;
            return row.deletion.state == DeletionState::kBegun &&
                   row.changed_at + limits::kDeletionKept <= now;
        });
        TakeReply reply;
        auto lapsed =
            Due(data, now, [](const Deletion& one) { return one.state == DeletionState::kTaken; });
        Take(lapsed, limit, now, reply);
        for (auto& [kind, pace] : data.paces) {
            if (pace.next_at > now) continue;
            if (!HasRoom(reply, pace.pace.cap, limit)) break;
            const auto& name = kind;
            auto due = Due(data, now, [&](const Deletion& one) {
                return one.state == DeletionState::kMarked && one.tenant == name.first &&
                       one.kind == name.second;
            });
            if (Take(due, pace.pace.cap, now, reply) > 0) pace.next_at = now + pace.pace.every;
        }
        return reply;
    });
}

void ResultDoor::BeginDeletion(DeletionId deletion, TaskId task) {
    Do([&](Ops& ops, ResultData& data) {
        for (auto& [name, row] : data.deletions) {
            if (row.deletion.id != deletion) continue;
            row.deletion.state = DeletionState::kBegun;
            row.deletion.task = task;
            row.changed_at = ops.now();
        }
        return true;
    });
}

void ResultDoor::SetPace(const Pace& pace) {
    Do([&](Ops& ops, ResultData& data) {
        auto [there, fresh] = data.paces.try_emplace({pace.tenant, pace.kind});
        PaceRow& row = there->second;
        row.pace = pace;
        row.next_at = fresh ? ops.now() : std::min(row.next_at, ops.now() + pace.every);
        return true;
    });
}

}  // namespace stint::store::memory
