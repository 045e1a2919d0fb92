#include "store/sqlite/client.h"

#include <fmt/format.h>

namespace stint::store::lite {

std::unique_ptr<Client> Client::Open(
    const std::string& socket, HandleId handle, Duration reply_timeout
) {
    auto client = std::make_unique<Client>(socket, handle, reply_timeout);
    try {
        client->GiveBack(client->Greet());
    } catch (const OwnerGone&) {
        return nullptr;
    }
    --client->left_;
    return client;
}

Fd Client::Greet() {
    std::optional<Fd> fd = Connect(socket_);
    if (!fd) throw OwnerGone{};
    if (!PeerOf(*fd).same_user)
        throw Unavailable("the owner of this store is another user's process");
    SetReceiveTimeout(*fd, reply_timeout_);
    std::string frame;
    if (ReceiveFrame(*fd, frame, 4096) != Received::kFrame) throw OwnerGone{};
    OwnerHello hello;
    Decoder in{frame};
    in(hello);
    if (hello.magic != kMagic || hello.version != kProtocolVersion) {
        throw Unavailable(fmt::format(
            "the process that owns this store speaks version {} of the socket's language, this one "
            "{}: "
            "run the same stint in both",
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

Fd Client::Take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || left_ > 0; });
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

std::string Client::Call(const std::string& request) {
    if (request.size() > kFrameMax) {
        throw Unavailable("the request is too large for the owner's socket: send less at once");
    }
    Fd fd = Take();
    if (!SendFrame(fd, request)) {
        GiveBack(Fd());
        throw OwnerGone{.sent = false};
    }
    std::string reply;
    Received received = ReceiveFrame(fd, reply, kFrameMax);
    GiveBack(received == Received::kFrame ? std::move(fd) : Fd());
    if (received != Received::kFrame) throw OwnerGone{.sent = true};
    return reply;
}

}  // namespace stint::store::lite
