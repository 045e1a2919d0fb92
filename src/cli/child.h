// Processes of our own: workers started by the demo and the benchmark by running this program
// again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace stint::cli {

class Child {
public:
    // Runs this program with these words; its standard error goes to `log` (appended), its output
    // nowhere. It dies with us. Call from the main thread only: the kernel ties its life to that.
    // The store's address goes through the environment, where its password is not for all to see.
    static Child Spawn(
        const std::vector<std::string>& words, const std::string& store, const std::string& log
    );
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();  // kills and collects it, if that has not happened

    pid_t pid() const { return pid_; }
    // True while it runs.
    bool Running();
    void Signal(int number) const;
    void Kill();  // SIGKILL, and waits for its end
    // Asks it to stop and waits; kills it when it takes longer.
    void Stop(int seconds);

private:
    explicit Child(pid_t pid) : pid_(pid) {}
    pid_t pid_ = -1;  // -1: none, or collected
};

}  // namespace stint::cli
