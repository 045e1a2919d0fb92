// stint store migrate | check | info
#include "cli/program.h"
#include "node/json_view.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

struct MigrateOptions {
    bool dry_run = false;
};
struct NoOptions {};

int MigrateStore(Invocation& invocation, const MigrateOptions& options) {
    auto scripts = node::Migrate(invocation.store_url(), options.dry_run, invocation.log());
    std::string address = node::WithoutSecrets(invocation.store_url());
    if (options.dry_run) {
        for (const std::string& script : scripts) invocation.out().Line(script);
        invocation.Say(
            "{}: {}",
            address,
            scripts.empty() ? "up to date, nothing would be run" : "nothing was run (--dry-run)"
        );
        return kOk;
    }
    invocation.Say("{}: {}", address, scripts.empty() ? "already up to date" : "migrated");
    return kOk;
}

int CheckStore(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    Listing listing;
    listing.name = "findings";
    listing.headers = {"", "CHECK", "DETAIL"};
    bool good = true;
    for (const node::CheckFinding& finding : client.Check()) {
        good = good && finding.ok;
        listing.rows.push_back(
            {{finding.ok ? "ok" : "FAIL", finding.ok ? Tint::kGood : Tint::kBad},
             {finding.what},
             {finding.detail}}
        );
        listing.objects.push_back(node::ToJson(finding));
        listing.ids.push_back(finding.what);
    }
    listing.extra["ok"] = good;
    invocation.out().Print(listing);
    invocation.Say("{}", good ? "the store is consistent" : "the store is NOT consistent");
    return good ? kOk : kFailed;
}

int ShowStore(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    node::StoreInfo info = client.Info();
    invocation.out().Print(
        {{"kind", {info.kind}},
         {"address", {info.address}},
         {"version", {info.version}},
         {"schema", {std::to_string(info.schema)}},
         {"durability", {info.durability}}},
        node::ToJson(info),
        info.address
    );
    return kOk;
}

}  // namespace

void AddStore(Program& program) {
    CLI::App& group =
        program.Group(program.root(), "store", "The store itself: make it, migrate it, check it.");
    program.Command<MigrateOptions>(
        group,
        "migrate",
        "Makes the store, or brings its schema up to date.",
        "stint store migrate --store postgres://admin@db/app\nstint store migrate --dry-run",
        [](Syntax& syntax, MigrateOptions& options) {
            syntax.Switch("--dry-run", options.dry_run, "print the SQL, run nothing");
        },
        MigrateStore
    );
    program.Command<NoOptions>(
        group,
        "check",
        "Verifies the store's own invariants; exit code 1 when one does not hold.",
        "stint store check",
        [](Syntax&, NoOptions&) {},
        CheckStore
    );
    program.Command<NoOptions>(
        group,
        "info",
        "Says what the store is and what it survives.",
        "stint store info",
        [](Syntax&, NoOptions&) {},
        ShowStore
    );
}

}  // namespace stint::cli
