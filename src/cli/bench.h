// stint bench: the options, and the kinds of measurement, each in the file of its name.
#pragma once

#include <string>

#include "cli/invocation.h"

namespace stint::cli {

// 0 and empty stand for the kind's own default.
struct BenchOptions {
    int tasks = 0;
    int first = 0;
    int processes = 1;
    int slots = 16;
    int batch = 0;
    int clients = 0;
    int rate = 0;
    int seconds = 0;
    int capacity = 64;
    int future = 0;
    std::string pin;
    bool in_place = false;
    bool force = false;
};

inline int Or(int given, int otherwise) {
    return given > 0 ? given : otherwise;
}

int BenchDrain(Invocation& invocation, const BenchOptions& options);
int BenchSubmit(Invocation& invocation, const BenchOptions& options);
int BenchLatency(Invocation& invocation, const BenchOptions& options);
int BenchOpenLoop(Invocation& invocation, const BenchOptions& options);
int BenchBacklog(Invocation& invocation, const BenchOptions& options);
int BenchPinned(Invocation& invocation, const BenchOptions& options);
int BenchResources(Invocation& invocation, const BenchOptions& options);
int BenchIdle(Invocation& invocation, const BenchOptions& options);
int BenchFanout(Invocation& invocation, const BenchOptions& options);

}  // namespace stint::cli
