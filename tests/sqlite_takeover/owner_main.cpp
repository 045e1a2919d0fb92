// A process that owns a SQLite store until it is killed: sqlite_owner PATH
//
// Says "ready" when it serves. Obeys lines on its input: "freeze POINT" stops the writer for ever
// at that test point, saying "frozen"; "claim" opens a session of its own and takes a task, saying
// its id; "exhaust" takes every descriptor that is left, "release" gives them back, saying how
// often a client could not be accepted meanwhile; the end of the input ends it in good order.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/test_point.h"
#include "store/sqlite/sqlite_store.h"

namespace {

using namespace stint;

void Say(const std::string& line) {
    std::string text = line + "\n";
    if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(3);
}

void Freeze(const std::string& point) {
    base::SetTestPointListener([point](std::string_view reached) {
        if (reached != point) return;
        Say("frozen");
        while (true) pause();
    });
}

void Claim(store::Store& store) {
    store::NewSession session;
    session.id = base::SystemRandom().MakeId<SessionId>();
    session.hostname = "owner";
    session.lease = std::chrono::hours{1};
    store.OpenSession(session);
    store::ClaimRequest request;
    request.session = session.id;
    request.types = {"t"};
    auto reply = store.Claim(request);
    Say(reply.leases.empty() ? "none" : reply.leases.front().task.ToString());
}

std::vector<int> taken;
std::atomic<int> refusals = 0;

void Exhaust() {
    base::SetTestPointListener([](std::string_view reached) {
        if (reached == "sqlite.accept_refused") ++refusals;
    });
    rlimit few{};
    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = dup(STDIN_FILENO); fd >= 0; fd = dup(STDIN_FILENO)) taken.push_back(fd);
    Say("exhausted");
}

void Release() {
    for (int fd : taken) close(fd);
    Say(std::to_string(refusals));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    store::SqliteOptions options;
    options.path = argv[1];
    auto store = store::OpenSqliteStore(options);
    Say("ready");
    for (std::string line; std::getline(std::cin, line);) {
        if (line.starts_with("freeze ")) Freeze(line.substr(7)), Say("armed");
        if (line == "claim") Claim(*store);
        if (line == "exhaust") Exhaust();
        if (line == "release") Release();
    }
    return 0;
}
