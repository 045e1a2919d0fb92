// stint task tree
#include <deque>
#include <iostream>
#include <iterator>

#include "cli/ids.h"
#include "cli/task_commands.h"
#include "cli/task_view.h"
#include "node/json_view.h"

namespace stint::cli {

namespace {

constexpr std::size_t kMostShown = 2000;

struct TreeOptions {
    std::string id;
};

// A task and all below it, depth first.
class Tree {
public:
    Tree(node::Client& client, Time now) : client_(client), now_(now) {
        listing_.name = "tasks";
        listing_.headers = {"TASK", "TYPE", "STATE", "DETAIL"};
    }

    void Add(const model::TaskRecord& task, const std::string& indent, const std::string& branch) {
        if (listing_.rows.size() == kMostShown) {
            cut_ = true;
            return;
        }
        std::string detail = DetailText(task, now_);
        if (task.waiting_for > 0) detail = fmt::format("waits for {} tasks", task.waiting_for);
        listing_.rows.push_back(
            {{indent + branch + task.id.ToString()},
             {task.type},
             StateCell(task.state),
             {Shorten(detail, 60)}}
        );
        listing_.objects.push_back(node::ToJson(task));
        listing_.ids.push_back(task.id.ToString());
        if (task.claim_no == 0) return;  // it has never run, and has made none
        std::string below = indent;
        if (!branch.empty()) below += branch == "└─ " ? "   " : "│  ";
        std::vector<model::TaskRecord> children = Children(task.id);
        for (std::size_t i = 0; i < children.size() && !cut_; ++i) {
            Add(children[i], below, i + 1 == children.size() ? "└─ " : "├─ ");
        }
    }

    const Listing& listing() const { return listing_; }
    bool cut() const { return cut_; }

private:
    // Oldest first, and no more than there is place for, and one.
    std::vector<model::TaskRecord> Children(TaskId parent) {
        const std::size_t most = kMostShown - listing_.rows.size() + 1;
        std::deque<model::TaskRecord> newest_first;
        node::ListRequest request;
        request.filter.parent = parent;
        request.limit = model::limits::kListPage;
        for (;;) {
            model::TaskPage page = client_.List(request);
            for (model::TaskRecord& task : page.tasks) newest_first.push_back(std::move(task));
            while (newest_first.size() > most) newest_first.pop_front();
            if (!page.next) break;
            request.before = *page.next;
        }
        return {
            std::make_move_iterator(newest_first.rbegin()),
            std::make_move_iterator(newest_first.rend())};
    }

    node::Client& client_;
    const Time now_;
    Listing listing_;
    bool cut_ = false;
};

int ShowTree(Invocation& invocation, const TreeOptions& options) {
    TaskId id = ReadIds({options.id}, std::cin).at(0);
    node::Client client = invocation.LookAtStore();
    auto task = client.Get(id);
    if (!task) throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
    Tree tree(client, client.Now());
    tree.Add(*task, "", "");
    invocation.out().Print(tree.listing());
    if (tree.cut()) {
        invocation.Say(
            "only the first {} are shown; for the rest: stint task list parent:ID", kMostShown
        );
    }
    return kOk;
}

}  // namespace

void AddTaskTree(Program& program, CLI::App& group) {
    program.Command<TreeOptions>(
        group,
        "tree",
        "Shows a task with its subtasks, and theirs.",
        "stint task tree 17",
        [](Syntax& syntax, TreeOptions& options) {
            syntax.Word("ID", options.id, "task id", Syntax::Need::kRequired);
        },
        ShowTree
    );
}

}  // namespace stint::cli
