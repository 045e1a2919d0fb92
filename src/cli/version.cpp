// stint version
#include "cli/program.h"
#include "node/paths.h"

namespace stint::cli {

namespace {

struct VersionOptions {
    bool json = false;
};

int PrintVersion(Invocation& invocation, const VersionOptions& options) {
    base::OrderedJson version = {
        {"version", node::kVersion},
        {"compiler", __VERSION__},
        {"build",
#ifdef NDEBUG
         "release"
#else
         "debug"
#endif
        },
    };
    if (options.json || invocation.out().format() == Format::kJson) {
        invocation.out().Line(base::JsonText(version, 2));
    } else {
        invocation.out().Line(fmt::format("stint {}", node::kVersion));
    }
    return kOk;
}

}  // namespace

void AddVersion(Program& program) {
    program.Command<VersionOptions>(
        program.root(),
        "version",
        "Prints the version.",
        "stint version --json",
        [](Syntax& syntax, VersionOptions& options) {
            syntax.Switch("--json", options.json, "as JSON, with compiler and libraries");
        },
        PrintVersion
    );
}

}  // namespace stint::cli
