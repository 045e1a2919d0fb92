// One call of Submit on its way through a transaction.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "store/postgres/store_impl.h"

namespace stint::store::pg {

// A valid request with all that is known before the transaction.
struct Incoming {
    const NewTask* task = nullptr;
    std::size_t index = 0;  // of its reply
    TaskId id;
    bool brought_id = false;  // by the caller, who may have sent it before
    Resolved resolved;
    int revision = 0;  // of its type's defaults
    int lane = 0;
    int policy = 0;
    int flags = 0;
    std::string hash;  // where there is an idempotency key
};

// A type's defaults have changed since they were used; they are to be read again.
struct OutdatedTypes : std::exception {
    const char* what() const noexcept override { return "a type's defaults have just changed"; }
};
constexpr int kTypeTries = 20;

Params InsertParams(std::span<const Incoming> incoming, bool caps_checked);
std::string TagsJson(const std::vector<std::string>& tags);

class Submission {
public:
    Submission(
        PostgresStore& store,
        Transaction& transaction,
        std::span<const NewTask> tasks,  // the whole batch
        std::span<const Incoming> incoming,
        std::vector<SubmitReply> replies
    );
    // Types that are not known yet are not registered before this is over. Only for transactions
    // that end soon.
    void WaitForRegistrations();
    // What one statement stores is committed in the same trip. Only for a transaction that nobody
    // else writes in.
    // Workers are told that there is something in these queues.
    void CommitAtOnce(std::vector<std::string> announced) {
        commits_ = true;
        announced_ = std::move(announced);
    }
    // Throws OutdatedTypes: then what was stored so far must be rolled back.
    std::vector<SubmitReply> Run();

private:
    enum KeyKind : int { kUnique = 0, kDebounce = 1, kThrottle = 2, kIdempotency = 3 };
    using Key = std::tuple<int, TenantId, std::string, std::string>;  // kind, tenant, type, key
    struct Meaning {
        TaskId task;
        std::string hash;
    };

    // Stores what is pending, with its replies. False: nothing, as a queue has a cap.
    bool Store(bool caps_checked);
    bool StorePiece(std::span<const Incoming> piece, bool caps_checked);
    Rows CommitPiece(std::span<const Incoming> piece, const Params& params);

    void JoinOrders();
    // What a handler submitted is as deep as its task.
    void FollowCauses();

    // submit_keys.cpp
    void DecideAll();
    void ReadKeys();
    void ReadIds();
    void ReadCaps();
    void Decide(const Incoming& one);
    std::optional<SubmitReply> KnownByKey(const Incoming& one);
    std::optional<SubmitReply> KnownByUnique(const Incoming& one);
    std::optional<SubmitReply> KnownByDebounce(const Incoming& one);
    // submit_after.cpp
    void HoldDependencies();
    // False: refused, with the reply.
    bool AddWait(const Incoming& one);
    void BlockNew();
    // nullopt: it is not waiting.
    std::optional<SubmitReply> Replace(TaskId waiting, const Incoming& one);
    void Remember(const Incoming& one, const SubmitReply& reply);
    void WriteKeys();
    static std::vector<Key> KeysOf(const Incoming& one);

    PostgresStore& store_;
    Transaction& transaction_;
    const Sql& sql_;
    const std::span<const NewTask> tasks_;
    const std::span<const Incoming> incoming_;
    std::vector<SubmitReply> replies_;
    std::vector<Incoming> pending_;
    bool commits_ = false;
    std::vector<std::string> announced_;

    std::vector<NewWait> waits_;
    std::map<TaskId, std::size_t> named_;  // indexes of those that brought an id
    PostgresStore::HeldTasks held_;

    std::map<Key, Meaning> keys_;
    struct Change {
        TaskId task;
        std::string hash;
        Duration lasts{};
    };
    std::map<Key, Change> changed_;
    std::set<TaskId> there_;                    // ids that exist already
    std::map<std::string, std::int64_t> caps_;  // of queues that have one
    std::map<std::string, std::int64_t> room_;  // left in them
};

}  // namespace stint::store::pg
