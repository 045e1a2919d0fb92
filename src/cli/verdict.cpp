#include "cli/verdict.h"

#include "cli/exit_code.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/task_view.h"
#include "model/time_text.h"
#include "node/json_view.h"

namespace stint::cli {

int AwaitVerdict(
    Invocation& invocation,
    node::Client& client,
    const std::vector<TaskId>& tasks,
    const std::optional<std::string>& limit
) {
    std::optional<Duration> time;
    if (limit) time = Need(model::ParseDuration(*limit));
    for (TaskId id : tasks) {
        if (!client.Get(id)) {
            throw CommandError(kNotFound, fmt::format("there is no task {}", id.ToString()));
        }
    }
    StopOnSignal signals;
    ProgressBar bar(invocation.progress() && tasks.size() > 1, tasks.size());
    Listing listing;
    listing.name = "tasks";
    listing.headers = {"ID", "STATE", "RESULT"};
    bool dead = false, cancelled = false;
    auto left = client.Wait(
        tasks,
        time,
        [&](const node::FinishedTask& task) {
            dead = dead || task.state == model::State::kDead;
            cancelled = cancelled || task.state == model::State::kCancelled;
            listing.rows.push_back({{task.id.ToString()}, StateCell(task.state), {ResultText(task)}}
            );
            listing.objects.push_back(node::ToJson(task));
            listing.ids.push_back(task.id.ToString());
            bar.Update(listing.rows.size());
        },
        signals.token()
    );
    bar.Finish();
    invocation.out().Print(listing);
    if (signals.signal() != 0) return 128 + signals.signal();
    if (!left.empty()) {
        invocation.Say(
            "{} not finished after {}: {}{}",
            left.size(),
            limit.value_or("the wait"),
            left.front().ToString(),
            left.size() > 1 ? ", …" : ""
        );
        return kStillRunning;
    }
    return dead ? kTaskFailed : cancelled ? kTaskCancelled : kOk;
}

}  // namespace stint::cli
