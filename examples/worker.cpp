// A program that is nothing but a worker: it handles one type until SIGTERM or Ctrl-C.
#include <stint/stint.h>

#include <iostream>

using namespace std::chrono_literals;

struct Resize {
    std::string url;
    int width = 0;
};
struct Thumbnail {
    std::string path;
    int rows = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Resize, url, width)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Thumbnail, path, rows)

inline constexpr stint::Task<Resize, Thumbnail> kResize{
    "image.resize", {.queue = "images", .retry = stint::Retry::Times(3), .timeout = 30s}};

namespace {

stint::Outcome<Thumbnail> MakeThumbnail(stint::Context& context, const Resize& in) {
    if (in.width <= 0) {
        return stint::Failed{.message = "width must be positive", .retryable = false};
    }
    for (int row = 0; row < in.width; ++row) {
        // Half a thumbnail is no result. The engine knows why it asked us to stop: after a shutdown
        // the task is handed back untouched, after a timeout it is tried again.
        if (context.stop().stop_requested()) return stint::Failed{.message = "stopped"};
        context.Progress("scale", row, in.width);  // kept with the task: stint task get ID
        if (row % 256 == 0) std::cout << "scale " << row << '/' << in.width << std::endl;
    }
    return Thumbnail{.path = "/srv/thumbs/" + in.url, .rows = in.width};
}

void PrintStart(const stint::AttemptInfo& attempt) {
    std::cout << attempt.type << ": start, attempt " << attempt.attempt << std::endl;
}
void PrintEnd(const stint::AttemptInfo& attempt) {
    std::cout << attempt.type << ": " << attempt.outcome << ' ' << attempt.error << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    stint::Engine worker({
        .store = argc > 1 ? argv[1] : "sqlite:images.db",
        .slots = 1,
        .queues = {"images"},
        .hooks = {.before_attempt = PrintStart, .after_attempt = PrintEnd},
    });
    worker.Handle(kResize, MakeThumbnail);
    for (int width : {512, 0}) worker.Submit(kResize, {.url = "cat.png", .width = width}).value();
    return worker.RunUntilSignal();
}
