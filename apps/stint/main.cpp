// The binary: worker and command line.
#include <stint/isolate.h>

#include "cli/cli.h"

int main(int argc, char** argv) {
    if (stint::IsIsolatedChild(argc, argv)) {
        return stint::RunIsolated(stint::cli::RegisterIsolatedHandlers);
    }
    return stint::cli::Run(argc, argv);
}
