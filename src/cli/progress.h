// Progress on standard error: a bar with count, rate and time left on a terminal, a plain line now
// and then elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "stint/time.h"

namespace stint::cli {

class ProgressBar {
public:
    // Elsewhere than on a terminal a line is printed at most every `plain_every`.
    ProgressBar(bool enabled, std::size_t total, Duration plain_every = std::chrono::seconds{10});
    ~ProgressBar();  // Finish()
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void Update(std::size_t done);    // drawn at most ten times a second
    void Say(std::string_view text);  // a line of its own, above the bar
    void Finish();                    // draws the last state and leaves the line

private:
    void Draw();
    void Erase();

    bool enabled_;
    bool terminal_;
    std::size_t total_;
    Duration plain_every_;
    std::size_t done_ = 0;
    bool drawn_ = false;  // the cursor stands on a bar
    bool finished_ = false;
    base::Instant begun_;
    base::Instant last_;  // when it was drawn last
    bool ever_ = false;
};

// "[#####-----]  50/100   25/s   eta 2s"
std::string ProgressText(std::size_t done, std::size_t total, Duration elapsed);

}  // namespace stint::cli
