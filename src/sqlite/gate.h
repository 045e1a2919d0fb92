// What foreign SQL may do on a connection that is lent for a moment: its own tables, for a limited
// time. It may not end the transaction, nor touch what is protected.
#pragma once

#include <functional>
#include <string_view>

#include "base/clock.h"
#include "sqlite/connection.h"

namespace stint::sqlite {

class Gate {
public:
    using Protected = std::function<bool(std::string_view name)>;  // of a table, view or index

    Gate(Connection& db, Protected is_protected);
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    // Statements are watched from now until Close(), and interrupted after `until`. Nothing can be
    // committed meanwhile: when a statement has undone the whole transaction, those behind it would
    // otherwise be stored one by one.
    void Open(base::Instant until);
    void Close();
    bool overdue() const;

    // The lender's own statements in between.
    class Pause {
    public:
        explicit Pause(Gate& gate) : gate_(gate), was_(gate.watching_) { gate_.watching_ = false; }
        ~Pause() { gate_.watching_ = was_; }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

    private:
        Gate& gate_;
        bool was_;
    };

private:
    static int
    Authorize(void* self, int action, const char* a, const char* b, const char*, const char*);
    static int Progress(void* self);
    static int RefuseCommit(void* self);
    bool Allows(int action, const char* a, const char* b) const;

    Connection& db_;
    const Protected is_protected_;
    bool watching_ = false;
    base::Instant until_{};
};

}  // namespace stint::sqlite
