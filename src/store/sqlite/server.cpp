#include "store/sqlite/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "store/sqlite/serve.h"

namespace stint::store::lite {

namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptAgainMs = 100;

using Tasks = std::vector<TaskId>;
using Text = std::string;

void ServeChange(
    Operation operation, DirectStore& s, const Opener& opener, Decoder& in, Encoder& out
) {
    switch (operation) {
        case Operation::kReserveIds:
            return Reply<int>(in, out, [&](int n) { return s.ReserveIds(n); });
        case Operation::kPublishTypes:
            return Reply<std::vector<TypeDefaults>>(in, out, [&](auto& types) {
                s.PublishTypes(types);
            });
        case Operation::kSubmit:
            return Reply<std::vector<NewTask>>(in, out, [&](auto& tasks) {
                return s.Submit(tasks);
            });
        case Operation::kSubmitAll:
            return Reply<std::vector<NewTask>>(in, out, [&](auto& tasks) {
                return s.SubmitAll(tasks);
            });
        case Operation::kOpenSession:
            return Reply<NewSession>(in, out, [&](auto& x) { return s.OpenSessionFor(x, opener); });
        case Operation::kRenew:
            return Reply<RenewRequest>(in, out, [&](auto& x) { return s.Renew(x); });
        case Operation::kCloseSession:
            return Reply<SessionId>(in, out, [&](auto& id) { s.CloseSession(id); });
        case Operation::kClaim:
            return Reply<ClaimRequest>(in, out, [&](auto& x) { return s.Claim(x); });
        case Operation::kSettle:
            return Reply<std::vector<Settlement>>(in, out, [&](auto& x) { return s.Settle(x); });
        case Operation::kReclaim:
            return Reply<ReclaimRequest>(in, out, [&](auto& x) { return s.Reclaim(x); });
        case Operation::kFinishBackground:
            return Reply<BackgroundFinish>(in, out, [&](auto& x) { return s.FinishBackground(x); });
        case Operation::kCancel:
            return Reply<Tasks, Text, Text>(in, out, [&](auto& tasks, auto& actor, auto& reason) {
                return s.Cancel(tasks, actor, reason);
            });
        case Operation::kRetry:
            return Reply<Tasks, Text>(in, out, [&](auto& x, auto& actor) {
                return s.Retry(x, actor);
            });
        case Operation::kDiscard:
            return Reply<Tasks, Text>(in, out, [&](auto& x, auto& actor) {
                return s.Discard(x, actor);
            });
        case Operation::kEdit:
            return Reply<TaskId, TaskEdit, Text>(in, out, [&](auto& task, auto& edit, auto& actor) {
                return s.Edit(task, edit, actor);
            });
        case Operation::kChangeQueue:
            return Reply<QueueChange, Text>(in, out, [&](auto& x, auto& a) {
                return s.ChangeQueue(x, a);
            });
        case Operation::kHousekeep:
            return Reply<HousekeepRequest>(in, out, [&](auto& x) { return s.Housekeep(x); });
        default:
            throw WireError("no such operation");
    }
}

void ServeAny(
    Operation operation, DirectStore& s, const Opener& opener, Decoder& in, Encoder& out
) {
    switch (operation) {
        case Operation::kInfo:
            return Reply<>(in, out, [&] { return s.Info(); });
        case Operation::kNow:
            return Reply<>(in, out, [&] { return s.Now(); });
        case Operation::kTypes:
            return Reply<>(in, out, [&] { return s.Types(); });
        case Operation::kSessions:
            return Reply<>(in, out, [&] { return s.Sessions(); });
        case Operation::kNodes:
            return Reply<>(in, out, [&] { return s.Nodes(); });
        case Operation::kQueues:
            return Reply<>(in, out, [&] { return s.Queues(); });
        case Operation::kCheck:
            return Reply<>(in, out, [&] { return s.Check(); });
        case Operation::kSettledBy:
            return Reply<TaskId, LeaseToken>(in, out, [&](auto& task, auto& token) {
                return s.SettledBy(task, token);
            });
        case Operation::kGet:
            return Reply<TaskId>(in, out, [&](auto& task) { return s.Get(task); });
        case Operation::kFindByIdempotencyKey:
            return Reply<TenantId, Text>(in, out, [&](auto& tenant, auto& key) {
                return s.FindByIdempotencyKey(tenant, key);
            });
        case Operation::kList:
            return Reply<ListRequest>(in, out, [&](auto& x) { return s.List(x); });
        case Operation::kCounts:
            return Reply<TaskFilter>(in, out, [&](auto& x) { return s.Counts(x); });
        case Operation::kAttempts:
            return Reply<TaskId>(in, out, [&](auto& x) { return s.Attempts(x); });
        case Operation::kWaited:
            return Reply<TaskId>(in, out, [&](auto& x) { return s.Waited(x); });
        case Operation::kAudit:
            return Reply<AuditRequest>(in, out, [&](auto& x) { return s.Audit(x); });
        case Operation::kFinished:
            return Reply<Tasks>(in, out, [&](auto& x) { return s.Finished(x); });
        case Operation::kExplain:
            return Reply<TaskId, ClaimRequest>(in, out, [&](auto& task, auto& claimer) {
                return s.Explain(task, claimer);
            });
        case Operation::kCrowds:
            return Reply<std::string>(in, out, [&](auto& x) { return s.Crowds(x); });
        default:
            if (ServeSchedules(operation, s.Schedules(), in, out)) return;
            if (ServeEvents(operation, s.Events(), in, out)) return;
            if (ServeFlows(operation, s.Flows(), in, out)) return;
            if (ServeResources(operation, s.Resources(), in, out)) return;
            if (ServeResults(operation, s.Results(), in, out)) return;
            return ServeChange(operation, s, opener, in, out);
    }
}

std::string Failure(Outcome outcome, std::string_view message) {
    Encoder out;
    out(outcome, message);
    return out.Take();
}

}  // namespace

Server::Server(DirectStore& store, std::string path, const SqliteOptions& options)
    : store_(store),
      path_(std::move(path)),
      max_clients_(options.max_clients),
      take_timeout_(options.take_timeout),
      answer_max_(std::min(options.answer_max, kFrameMax)),
      log_(options.log),
      listener_(Listen(path_, kBacklog)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
    acceptor_ = base::StartThread([this] { AcceptLoop(); });
}

Server::~Server() {
    unlink(path_.c_str());
    eventfd_write(stop_.get(), 1);
    acceptor_.join();
    // Their next receive ends them; a request that runs is finished and answered first, as far as
    // its client takes the answer.
    for (const auto& client : clients_) shutdown(client->fd.get(), SHUT_RD);
    clients_.clear();
}

void Server::AcceptLoop() {
    bool refused = false;
    while (true) {
        pollfd wait[2] = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
        // Without a descriptor left the listener would be ready for ever: wait for one to come
        // back.
        if (poll(wait, refused ? 1 : 2, refused ? kAcceptAgainMs : -1) < 0) continue;
        if ((wait[0].revents & POLLIN) != 0) return;
        Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        int why = errno;
        bool exhausted = !fd.valid() && why != EAGAIN && why != ECONNABORTED && why != EINTR;
        if (exhausted) base::TestPoint("sqlite.accept_refused");
        if (exhausted && !refused) {
            log_.Warn("a client waits that cannot be accepted", {{"why", std::strerror(why)}});
        }
        refused = exhausted;
        ForgetDone();
        if (fd.valid()) Admit(std::move(fd));
    }
}

void Server::ForgetDone() {
    clients_.remove_if([](const auto& client) { return client->done.load(); });
}

void Server::Admit(Fd fd) {
    OwnerHello hello;
    if (!PeerOf(fd).same_user) {
        hello.refusal = "this store belongs to another user";
    } else if (static_cast<int>(clients_.size()) >= max_clients_) {
        hello.refusal = fmt::format(
            "the store's owner serves {} connections already, which is its limit", max_clients_
        );
    }
    // A client that is stopped must not keep its thread, and so this process, from ending.
    SetSendTimeout(fd, take_timeout_);
    Encoder out;
    out(hello);
    if (!SendFrame(fd, out.Take())) return;
    if (!hello.refusal.empty()) {
        log_.Warn("a connection was refused", {{"why", hello.refusal}});
        return;
    }
    auto client = std::make_unique<Client>();
    client->fd = std::move(fd);
    Client& added = *client;
    clients_.push_back(std::move(client));
    added.thread = base::StartThread([this, &added] {
        Serve(added);
        shutdown(added.fd.get(), SHUT_RDWR);
        added.done = true;
    });
}

void Server::Serve(Client& client) {
    std::string frame;
    try {
        if (ReceiveFrame(client.fd, frame, 1024) != Received::kFrame) return;
        ClientHello hello;
        Decoder in{frame};
        in(hello);
        if (hello.magic != kMagic || hello.version != kProtocolVersion) return;
        Opener opener{hello.handle, ProcessIdentity(PeerOf(client.fd).pid)};
        while (ReceiveFrame(client.fd, frame, kFrameMax) == Received::kFrame) {
            std::string reply = Answer(frame, opener);
            base::TestPoint("sqlite.server_answer");
            if (!SendFrame(client.fd, reply)) return;
        }
    } catch (const WireError& error) {
        log_.Warn("a connection spoke nonsense and was closed", {{"why", error.what()}});
    } catch (const std::exception& error) {
        log_.Warn("a connection failed and was closed", {{"why", error.what()}});
    }
}

std::string Server::Answer(std::string_view request, const Opener& opener) {
    Decoder in(request);
    BeginBy begin_by;
    Operation operation{};
    in(begin_by, operation);
    if (base::SystemClock().Now().time_since_epoch().count() > begin_by.nanoseconds) {
        return Failure(
            Outcome::kUnavailable,
            "the store's owner read the request too late, and did nothing: it was stopped, or the "
            "machine is overloaded"
        );
    }
    try {
        return Carry(operation, in, opener);
    } catch (const WireError&) {
        throw;
    } catch (const CommitUnknown& error) {
        return Failure(Outcome::kCommitUnknown, error.what());
    } catch (const WrongSchema& error) {
        return Failure(Outcome::kWrongSchema, error.what());
    } catch (const Unstorable& error) {
        return Failure(Outcome::kUnstorable, error.what());
    } catch (const std::exception& error) {
        return Failure(Outcome::kUnavailable, error.what());
    }
}

std::string Server::Carry(Operation operation, Decoder& in, const Opener& opener) {
    Encoder out;
    ServeAny(operation, store_, opener, in, out);
    std::string reply = out.Take();
    if (reply.size() <= answer_max_) return reply;
    // What was changed stays changed: "nothing was" would strand what a claim took.
    if (Changes(operation)) {
        throw CommitUnknown("the answer is too large for the owner's socket; the change was made");
    }
    throw Unavailable("the answer is too large for the owner's socket: ask for less");
}

}  // namespace stint::store::lite
