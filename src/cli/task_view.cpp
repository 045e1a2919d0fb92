#include "cli/task_view.h"

#include <fmt/format.h>

#include "model/time_text.h"

namespace stint::cli {

namespace {

constexpr std::size_t kDetailWidth = 60;

std::string ErrorText(const model::TaskError& error) {
    if (error.klass.empty()) return error.message;
    return fmt::format("{}: {}", error.klass, error.message);
}

}  // namespace

std::string ProgressText(const model::Progress& progress) {
    std::string text = progress.step;
    if (!text.empty()) text += ' ';
    text += progress.total ? fmt::format("{}/{}", progress.done, *progress.total)
                           : std::to_string(progress.done);
    if (!progress.message.empty()) text += ' ' + progress.message;
    return text;
}

Cell StateCell(model::State state) {
    using model::State;
    Tint tint = Tint::kPlain;
    switch (state) {
        case State::kOpen:
        case State::kBlocked:
            break;
        case State::kInProgress:
        case State::kBackground:
            tint = Tint::kBusy;
            break;
        case State::kComplete:
            tint = Tint::kGood;
            break;
        case State::kError:
            tint = Tint::kWarn;
            break;
        case State::kCancelled:
            tint = Tint::kFaint;
            break;
        case State::kDead:
            tint = Tint::kBad;
            break;
    }
    return {std::string(model::StateName(state)), tint};
}

std::string Ago(Time then, Time now) {
    auto distance = std::chrono::duration_cast<Duration>(now - then);
    if (distance < Duration::zero()) return "in " + model::RoughDuration(-distance);
    return model::RoughDuration(distance) + " ago";
}

std::string DetailText(const model::TaskRecord& task, Time now) {
    using model::State;
    std::string text;
    switch (task.state) {
        case State::kOpen:
            if (task.due_at > now)
                text = "due " + Ago(task.due_at, now);
            else if (!task.type_known)
                text = "no worker knows its type yet";
            else if (task.suspect)
                text = "was running in a process that crashed; runs alone";
            break;
        case State::kInProgress:
            if (task.cancel_requested)
                text = "cancel requested";
            else if (task.progress)
                text = ProgressText(*task.progress);
            break;
        case State::kError:
            text = fmt::format("again {}: ", Ago(task.due_at, now));
            if (task.error) text += ErrorText(*task.error);
            break;
        case State::kComplete:
            text = task.output;
            break;
        case State::kDead:
        case State::kCancelled:
            text = task.reason;
            if (task.error) text += (text.empty() ? "" : "; ") + ErrorText(*task.error);
            break;
        case State::kBlocked:
        case State::kBackground:
            text = task.reason;
            break;
    }
    return Shorten(text, kDetailWidth);
}

std::string ResultText(const node::FinishedTask& task) {
    if (task.state == model::State::kComplete) return task.output;
    std::string text = task.reason;
    if (task.error) text += (text.empty() ? "" : "; ") + ErrorText(*task.error);
    return Shorten(text, 4 * kDetailWidth);
}

}  // namespace stint::cli
