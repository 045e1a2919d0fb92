#include "engine/isolate/command.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include "engine/isolate/keeper.h"
#include "engine/isolate/tail.h"

namespace stint::engine::isolate {

namespace {

// A command that does not read its input must not send us SIGPIPE; the process's own handling of
// that signal is not ours to change.
class PipeSignalBlocked {
public:
    PipeSignalBlocked() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~PipeSignalBlocked() {
        timespec now{};
        if (!was_pending_) {
            while (sigtimedwait(&pipe_, nullptr, &now) > 0) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

private:
    sigset_t pipe_{};
    sigset_t before_{};
    bool was_pending_ = false;
};

class Run {
public:
    explicit Run(const CommandRequest& request) : request_(request), tail_(request.stderr_tail) {}

    CommandResult Go(std::stop_token stop) {
        PipeSignalBlocked blocked;
        Child child = Launch();
        StopEvent event(stop);
        Keeper keeper(child, request_.grace);
        for (bool ended = false; !ended;) {
            if (stop.stop_requested() && !keeper.stopping()) {
                result_.stopped = true;
                keeper.Begin(false);
            }
            keeper.Advance();
            ended = Wait(child, keeper.stopping() ? -1 : event.fd(), keeper);
        }
        Exit exit = child.Collect();
        // The group is gone, so the pipes end.
        ReadOutput();
        ReadErrors();
        result_.exit_code = exit.code;
        result_.exit_signal = exit.signal;
        result_.stderr_tail = std::move(tail_).Take();
        return std::move(result_);
    }

private:
    Child Launch() {
        Pipe in = MakePipe();
        Pipe out = MakePipe();
        Pipe err = MakePipe();
        SpawnRequest spawn;
        spawn.file = request_.argv.at(0);
        spawn.argv = request_.argv;
        spawn.env = request_.env;
        spawn.directory = request_.directory;
        spawn.limits = request_.limits;
        spawn.guarded = true;
        spawn.fds = {{in.read.get(), 0}, {out.write.get(), 1}, {err.write.get(), 2}};
        Child child = Child::Spawn(spawn);
        in_ = std::move(in.write);
        out_ = std::move(out.read);
        err_ = std::move(err.read);
        for (const Fd* fd : {&in_, &out_, &err_}) SetNonBlocking(*fd);
        if (request_.input.empty()) in_.Close();
        return child;
    }

    bool Wait(const Child& child, int stop_fd, const Keeper& keeper) {
        std::array<pollfd, 5> fds{{
            {child.pidfd(), POLLIN, 0},
            {in_.get(), POLLOUT, 0},
            {out_.get(), POLLIN, 0},
            {err_.get(), POLLIN, 0},
            {stop_fd, POLLIN, 0},
        }};
        if (poll(fds.data(), fds.size(), keeper.Milliseconds(std::chrono::minutes{1})) <= 0) {
            return false;
        }
        if (fds[1].revents != 0) WriteInput();
        if (fds[2].revents != 0) ReadOutput();
        if (fds[3].revents != 0) ReadErrors();
        return fds[0].revents != 0;
    }

    void WriteInput() {
        while (written_ < request_.input.size()) {
            ssize_t done = write(
                in_.get(), request_.input.data() + written_, request_.input.size() - written_
            );
            if (done < 0 && errno == EINTR) continue;
            if (done < 0 && errno == EAGAIN) return;
            if (done <= 0) break;  // it does not read any more, which is its right
            written_ += static_cast<std::size_t>(done);
        }
        in_.Close();
    }

    template <class Use>
    static void Read(Fd& fd, Use use) {
        char chunk[16384];
        while (fd.open()) {
            ssize_t got = read(fd.get(), chunk, sizeof chunk);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) return;
            if (got <= 0) return fd.Close();
            use(std::string_view(chunk, static_cast<std::size_t>(got)));
        }
    }
    void ReadOutput() {
        Read(out_, [this](std::string_view bytes) {
            std::size_t room = request_.output_limit - result_.output.size();
            result_.output += bytes.substr(0, room);
            if (bytes.size() > room) result_.output_cut = true;
        });
    }
    void ReadErrors() {
        Read(err_, [this](std::string_view bytes) { tail_.Append(bytes); });
    }

    const CommandRequest& request_;
    CommandResult result_;
    Tail tail_;
    Fd in_, out_, err_;
    std::size_t written_ = 0;
};

}  // namespace

CommandResult RunCommand(const CommandRequest& request, std::stop_token stop) {
    return Run(request).Go(std::move(stop));
}

}  // namespace stint::engine::isolate
