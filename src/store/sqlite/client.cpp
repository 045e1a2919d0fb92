#include "store/sqlite/client.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace stint::store::lite {

namespace {
constexpr std::size_t kHeadRoom = 64;  // for what stands before the request
}

std::unique_ptr<Client> Client::Open(
    const std::string& socket, HandleId handle, const SqliteOptions& options
) {
    auto client = std::make_unique<Client>(socket, handle, options);
    try {
        client->GiveBack(client->Greet());
    } catch (const OwnerGone&) {
        return nullptr;
    }
    --client->left_;
    return client;
}

OwnerHello Client::Hear(const Fd& fd) {
    if (!AwaitReadable(fd, silence_)) throw OwnerSilent{.sent = false, .stopped = true};
    std::string frame;
    if (ReceiveFrame(fd, frame, 4096) != Received::kFrame) throw OwnerGone{};
    OwnerHello hello;
    Decoder in{frame};
    in(hello);
    return hello;
}

Fd Client::Greet() {
    std::optional<Fd> fd = Connect(socket_, silence_);
    if (!fd) throw OwnerGone{};
    if (!PeerOf(*fd).same_user)
        throw Unavailable("the owner of this store is another user's process");
    SetReceiveTimeout(*fd, reply_timeout_);
    OwnerHello hello = Hear(*fd);
    if (hello.magic != kMagic || hello.version != kProtocolVersion) {
        throw Unavailable(fmt::format(
            "the process that owns this store speaks version {} of the socket's language, this one "
            "{}: run the same stint in both",
            hello.version,
            kProtocolVersion
        ));
    }
    if (!hello.refusal.empty()) throw Unavailable(hello.refusal);
    Encoder out;
    out(ClientHello{.handle = handle_});
    if (!SendFrame(*fd, out.Take())) throw OwnerGone{};
    return std::move(*fd);
}

bool Client::OwnerGreets() {
    std::optional<Fd> fd = Connect(socket_, silence_);
    return fd && AwaitReadable(*fd, silence_);
}

Fd Client::Take() {
    std::unique_lock lock(mutex_);
    auto there_is_one = [this] { return !idle_.empty() || left_ > 0; };
    if (!returned_.wait_for(lock, reply_timeout_, there_is_one)) {
        throw Unavailable("all connections to the store's owner wait for its answers: try again");
    }
    if (!idle_.empty()) {
        Fd fd = std::move(idle_.back());
        idle_.pop_back();
        return fd;
    }
    --left_;
    lock.unlock();
    try {
        return Greet();
    } catch (...) {
        GiveBack(Fd());
        throw;
    }
}

void Client::GiveBack(Fd fd) {
    std::lock_guard guard(mutex_);
    if (fd.valid()) {
        idle_.push_back(std::move(fd));
    } else {
        ++left_;
    }
    returned_.notify_one();
}

// An owner that is busy greets all the same, and is given the time it needs.
void Client::AwaitReply(const Fd& fd) {
    base::Instant until = base::SystemClock().Now() + reply_timeout_;
    while (!AwaitReadable(fd, silence_)) {
        if (!OwnerGreets()) throw OwnerSilent{.sent = true, .stopped = true};
        if (base::SystemClock().Now() > until) throw OwnerSilent{.sent = true, .stopped = false};
    }
}

std::string Client::Call(std::string_view request) {
    if (request.size() > kFrameMax - kHeadRoom) {
        throw Unavailable("the request is too large for the owner's socket: send less at once");
    }
    Fd fd = Take();
    try {
        Encoder out;
        auto begin_by = base::SystemClock().Now() + 2 * silence_;
        out(BeginBy{begin_by.time_since_epoch().count()});
        if (!SendFrame(fd, out.Take(), request)) throw OwnerGone{.sent = false};
        AwaitReply(fd);
        std::string reply;
        if (ReceiveFrame(fd, reply, kFrameMax) != Received::kFrame) throw OwnerGone{.sent = true};
        GiveBack(std::move(fd));
        return reply;
    } catch (...) {
        GiveBack(Fd());
        throw;
    }
}

}  // namespace stint::store::lite
