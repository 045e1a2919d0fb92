// Threads of the library. A host embeds it: the host's signals are the host's, so none of our
// threads may be the one that the kernel picks to run a handler, or to die of a default action.
#pragma once

#include <pthread.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): pthread_sigmask is POSIX

#include <thread>
#include <utility>

namespace stint::base {

// While it lives, the calling thread takes no asynchronous signal, nor does any thread it starts.
// Signals of a fault (SIGSEGV and its like) stay as they are: they belong to whoever caused them.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
            sigdelset(&blocked, fault);
        }
        pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

template <class F>
[[nodiscard]] std::jthread StartThread(F&& work) {
    SignalsBlocked blocked;
    return std::jthread(std::forward<F>(work));
}

}  // namespace stint::base
