// How a call of SharedStore reaches the file: in this process, or through the owner's socket.
#pragma once

#include <fmt/format.h>

#include <type_traits>

#include "base/clock.h"
#include "store/sqlite/shared_store.h"

namespace stint::store::lite {

template <class T>
std::vector<T> Copy(std::span<const T> values) {
    return {values.begin(), values.end()};
}

// What a reply is decoded into. A Result has no empty value of its own.
template <class Reply>
struct Blank {
    static Reply Make() { return Reply{}; }
};
template <class T>
requires(!std::is_void_v<T>) struct Blank<Result<T>> {
    static Result<T> Make() { return T{}; }
};

// The reply itself, or what the owner says instead.
template <class Reply>
Reply DecodeReply(const std::string& bytes) {
    Decoder in(bytes);
    Outcome outcome{};
    in(outcome);
    if (outcome == Outcome::kReply) {
        if constexpr (std::is_void_v<Reply>) {
            in.End();
            return;
        } else {
            Reply reply = Blank<Reply>::Make();
            in(reply);
            in.End();
            return reply;
        }
    }
    std::string message;
    in(message);
    if (outcome == Outcome::kCommitUnknown) throw CommitUnknown(message);
    if (outcome == Outcome::kWrongSchema) throw WrongSchema(message);
    if (outcome == Outcome::kUnstorable) throw Unstorable(message);
    throw Unavailable(message);
}

template <class Reply, class Direct, class... Args>
Reply SharedStore::Do(Operation operation, Direct&& direct, const Args&... args) {
    std::string request;
    base::Instant until = base::SystemClock().Now() + options_.patience;
    while (true) {
        std::shared_ptr<Role> role = Current();
        if (role->direct) return direct(*role->direct);
        if (request.empty()) {
            Encoder out;
            out(operation, args...);
            request = out.Take();
        }
        try {
            return DecodeReply<Reply>(role->client->Call(request));
        } catch (const OwnerGone& gone) {
            Leave(role);
            if (gone.sent && Changes(operation)) {
                throw CommitUnknown("the process that owns the store went away before it answered");
            }
            // Otherwise nothing was changed: ask the next owner, which may be this process.
            if (base::SystemClock().Now() > until)
                throw Unavailable("the store's owners keep going away");
        } catch (const OwnerSilent& silent) {
            if (silent.stopped) Leave(role);
            std::string why = silent.stopped
                                  ? StoppedOwner()
                                  : "the store's owner lives, but gave no answer in time";
            if (silent.sent && Changes(operation)) throw CommitUnknown(why);
            throw Unavailable(why);
        } catch (const WireError& error) {
            Leave(role);
            throw CommitUnknown(fmt::format("the store's owner answered nonsense: {}", error.what())
            );
        }
    }
}

}  // namespace stint::store::lite
