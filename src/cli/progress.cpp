#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/time_text.h"

namespace stint::cli {

namespace {

constexpr Duration kRedraw{100};

}  // namespace

std::string ProgressText(std::size_t done, std::size_t total, Duration elapsed) {
    constexpr std::size_t kWidth = 20;
    std::size_t filled = total == 0 ? kWidth : std::min(kWidth, done * kWidth / total);
    std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '-');
    std::string text =
        fmt::format("[{}] {:>{}}/{}", bar, done, std::to_string(total).size(), total);
    if (done == 0 || elapsed < std::chrono::milliseconds{200}) return text;
    double rate = static_cast<double>(done) * 1000.0 / static_cast<double>(elapsed.count());
    text += rate < 10 ? fmt::format("   {:.1f}/s", rate) : fmt::format("   {:.0f}/s", rate);
    if (done < total) {
        auto left = static_cast<std::int64_t>(std::ceil(static_cast<double>(total - done) / rate));
        text += left < 60
                    ? fmt::format("   eta {}s", left)
                    : fmt::format("   eta {}", model::RoughDuration(std::chrono::seconds{left}));
    }
    return text;
}

ProgressBar::ProgressBar(bool enabled, std::size_t total, Duration plain_every)
    : enabled_(enabled),
      terminal_(isatty(STDERR_FILENO) == 1),
      total_(total),
      plain_every_(plain_every),
      begun_(base::SystemClock().Now()),
      last_(begun_) {
}

ProgressBar::~ProgressBar() {
    Finish();
}

void ProgressBar::Draw() {
    auto now = base::SystemClock().Now();
    auto text = ProgressText(done_, total_, std::chrono::duration_cast<Duration>(now - begun_));
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[K{}", text);
        std::fflush(stderr);
        drawn_ = true;
    } else {
        fmt::print(stderr, "{}\n", text);
    }
    last_ = now;
    ever_ = true;
}

void ProgressBar::Erase() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
    drawn_ = false;
}

void ProgressBar::Update(std::size_t done) {
    done_ = done;
    if (!enabled_ || finished_) return;
    Duration every = terminal_ ? kRedraw : plain_every_;
    if (base::SystemClock().Now() - last_ >= every || (terminal_ && !ever_)) Draw();
}

void ProgressBar::Say(std::string_view text) {
    if (!enabled_) return;
    bool redraw = drawn_;
    Erase();
    fmt::print(stderr, "{}\n", text);
    if (redraw) Draw();
}

void ProgressBar::Finish() {
    if (!enabled_ || finished_) return;
    finished_ = true;
    if (!ever_ && !terminal_) return;  // it was short: nothing was said, nothing need be
    Draw();
    if (terminal_) fmt::print(stderr, "\n");
    drawn_ = false;
}

}  // namespace stint::cli
