// Runs two or three sessions on a real PostgreSQL server in every order of their steps.
//
// Each session has its own thread and connection and does its steps one after the other; the runner
// decides whose turn it is. A step that waits for another session's lock is noticed through
// pg_blocking_pids(), and its session is passed over until it is free again. Every possible order
// is tried, each from a fresh start, and checked at its end, until two were found to be wrong.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "postgres/connection.h"

namespace stint::interleave {

struct Step {
    std::string name;
    std::function<void(postgres::Connection&)> run;
};

struct Script {
    std::string name;
    std::vector<Step> steps;
};

struct Scenario {
    std::function<void()> prepare;                 // before each order
    std::function<std::vector<Script>()> scripts;  // after it; fresh closures for each order
    std::function<std::string()> check;            // after each order: what is wrong, or nothing
};

struct Outcome {
    int orders = 0;
    int waits = 0;                        // steps that had to wait for a lock, in all orders
    std::vector<std::string> violations;  // "A1 B1 …: what was wrong"
    std::vector<std::string> errors;      // what the server refused, likewise
};

// `url` names the server; each session calls itself "<scenario> <script>" there.
Outcome RunAllOrders(const std::string& url, const Scenario& scenario);

}  // namespace stint::interleave
