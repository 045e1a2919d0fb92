// Tasks that start after each other, submitted together: all of them or none.
//
//     stint::Graph graph;
//     auto fetch = graph.Add(kFetch, {"https://example.org"});
//     auto parse = graph.Add(kParse, {}, {}, {.tasks = {fetch}});
//     auto tell = graph.Add(kTell, {}, {}, {.tasks = {fetch, parse}, .need_success = false});
//     std::vector<stint::TaskId> ids = engine.SubmitGraph(graph).value();   // in the order of Add
//
// A batch with a callback is a graph whose last task comes after all the others, or after any: see
// stint::After for what `any` and `need_success` mean. A graph has at most 10 100 tasks, of which
// one may come after 10 000 others: a group of that size with its callbacks.
#pragma once

#include <stint/codec.h>
#include <stint/submit_options.h>
#include <stint/task.h>
#include <stint/wait.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stint {

// A task of a graph.
struct GraphNode {
    std::size_t index = 0;
};
// Which tasks of its graph a task starts after, besides those that its options name.
struct AfterNodes {
    std::vector<GraphNode> tasks = {};
    OnFailure on_failure = OnFailure::kWaitForAll;
    bool any = false;
    bool need_success = true;
};

class Graph {
public:
    using Node = GraphNode;

    // NOLINTBEGIN(performance-unnecessary-value-param): moved on, which a template does not show
    template <class In, class Out>
    Node Add(
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        SubmitOptions options = {},
        AfterNodes after = {}
    ) {
        return AddBytes(
            task.name, task.defaults, Codec<In>::Encode(input), std::move(options), std::move(after)
        );
    }
    template <class Out>
    Node Add(const Task<void, Out>& task, SubmitOptions options = {}, AfterNodes after = {}) {
        return AddBytes(task.name, task.defaults, "null", std::move(options), std::move(after));
    }
    // NOLINTEND(performance-unnecessary-value-param)
    // Later than Add(): more that a task starts after.
    void Depend(Node task, Node after) { entries_.at(task.index).after.tasks.push_back(after); }

    std::size_t size() const { return entries_.size(); }

    struct Entry {
        std::string type;
        TaskDefaults defaults;
        std::string input;
        SubmitOptions options;
        AfterNodes after;
    };
    const std::vector<Entry>& entries() const { return entries_; }

private:
    Node AddBytes(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        SubmitOptions options,
        AfterNodes after
    ) {
        entries_.push_back(
            {std::string(type), defaults, std::move(input), std::move(options), std::move(after)}
        );
        return {entries_.size() - 1};
    }

    std::vector<Entry> entries_;
};

}  // namespace stint
