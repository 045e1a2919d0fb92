// The Context that handlers see.
#pragma once

#include <stint/context.h>

#include <string>

#include "engine/attempts.h"
#include "engine/outcome.h"

namespace stint::engine {

// Holds nothing but the attempt, so a handler left behind can go on using it.
class AttemptContext final : public Context {
public:
    explicit AttemptContext(AttemptPtr attempt) : attempt_(std::move(attempt)) {}

    TaskId id() const override { return attempt_->lease.task; }
    std::string_view type() const override { return attempt_->lease.type; }
    TenantId tenant() const override { return attempt_->lease.tenant; }
    int attempt() const override { return attempt_->lease.attempt; }
    std::string_view idempotency_key() const override { return attempt_->lease.idempotency_key; }
    std::int64_t fencing_number() const override { return attempt_->lease.claim_no; }
    std::string completion_token() const override { return attempt_->lease.token.ToString(); }
    std::stop_token stop() const override { return attempt_->stop_token(); }
    StopReason why() const override { return attempt_->why(); }
    void Progress(
        std::string_view step,
        std::int64_t done,
        std::optional<std::int64_t> total,
        std::string_view message
    ) override;
    void Warn(std::string_view note) override;

    const store::Lease& lease() const { return attempt_->lease; }
    void Record(Evidence evidence) { evidence_ = std::move(evidence); }

    // What the handler said besides its outcome.
    void Into(AttemptResult& result) &&;

private:
    Result<void> CompleteInBytes(Transaction& transaction, std::string output) override;

    const AttemptPtr attempt_;
    std::string warning_;
    Evidence evidence_;
    bool completed_in_ = false;
};

// For handlers of this project that run commands: what the process left behind goes to the
// attempt's row. Contexts of other kinds ignore it.
void Record(Context& context, Evidence evidence);

}  // namespace stint::engine
