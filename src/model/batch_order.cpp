#include "model/batch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace stint::model {

namespace {

// Depth first, with a stack of its own: a chain may be as long as the batch.
class Walk {
public:
    explicit Walk(std::span<const NewTask> tasks) : tasks_(tasks), marks_(tasks.size()) {
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            if (tasks[i].id.valid()) by_id_.emplace(tasks[i].id, i);
        }
    }

    BatchOrder Run() {
        for (std::size_t i = 0; i < tasks_.size(); ++i) {
            if (marks_[i] == Mark::kNew) Visit(i);
        }
        std::erase_if(result_.order, [this](std::size_t i) { return result_.refused.contains(i); });
        return std::move(result_);
    }

private:
    enum class Mark : std::uint8_t { kNew, kOpen, kDone };
    struct Step {
        std::size_t task;
        std::size_t next;  // of those it waits for
    };

    void Visit(std::size_t first) {
        stack_.assign(1, {first, 0});
        marks_[first] = Mark::kOpen;
        while (!stack_.empty()) {
            Step& step = stack_.back();
            const auto& after = tasks_[step.task].after;
            if (!after || step.next == after->on.size()) {
                marks_[step.task] = Mark::kDone;
                result_.order.push_back(step.task);
                stack_.pop_back();
                continue;
            }
            auto found = by_id_.find(after->on[step.next++]);
            if (found == by_id_.end()) continue;  // not of this batch
            if (marks_[found->second] == Mark::kOpen) {
                RefuseCycle(found->second);
            } else if (marks_[found->second] == Mark::kNew) {
                marks_[found->second] = Mark::kOpen;
                stack_.push_back({found->second, 0});
            }
        }
    }

    void RefuseCycle(std::size_t again) {
        auto from = std::ranges::find(stack_, again, &Step::task);
        std::string path;
        for (auto step = from; step != stack_.end(); ++step) {
            path += tasks_[step->task].id.ToString() + " -> ";
        }
        path += tasks_[again].id.ToString();
        for (auto step = from; step != stack_.end(); ++step) {
            result_.refused.emplace(
                step->task,
                fmt::format("after makes a cycle ({}): none of them could ever start", path)
            );
        }
    }

    std::span<const NewTask> tasks_;
    std::unordered_map<TaskId, std::size_t> by_id_;
    std::vector<Mark> marks_;
    std::vector<Step> stack_;
    BatchOrder result_;
};

}  // namespace

BatchOrder OrderOf(std::span<const NewTask> tasks) {
    return Walk(tasks).Run();
}

bool AnyAfter(std::span<const NewTask> tasks) {
    return std::ranges::any_of(tasks, [](const NewTask& task) { return task.after.has_value(); });
}

}  // namespace stint::model
