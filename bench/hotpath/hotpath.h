// Shared by the measuring program and the checks: shape files, prepared statements, one worker.
#pragma once
#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace hotpath {

using Clock = std::chrono::steady_clock;
inline double Now() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

const char* const kInput = R"({"n":123456,"user":"u-000123","action":"send_email",)"
                           R"("template":"welcome","lang":"en","pad":"xxxxxxx"})";
constexpr Oid kInt4 = 23, kInt8 = 20, kUuid = 2950, kInt4Array = 1007, kInt8Array = 1016,
              kTextArray = 1009;

struct Shape {
    std::string schema;
    std::map<std::string, std::string> statements;
};

inline Shape Load(const std::string& path) {
    Shape shape;
    std::ifstream file(path);
    std::string line, name;
    while (std::getline(file, line)) {
        if (line.rfind("-- name: ", 0) == 0)
            name = line.substr(9);
        else
            (name.empty() ? shape.schema : shape.statements[name]) += line + "\n";
    }
    return shape;
}

inline PGresult* Must(PGconn* conn, PGresult* result) {
    const auto status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        std::fprintf(stderr, "%s\n", PQerrorMessage(conn));
        std::exit(1);
    }
    return result;
}
inline void Run(PGconn* conn, const std::string& sql) {
    PQclear(Must(conn, PQexec(conn, sql.c_str())));
}

inline PGconn* Connect(const std::string& info, const Shape& shape, bool prepare) {
    PGconn* conn = PQconnectdb(info.c_str());
    if (PQstatus(conn) != CONNECTION_OK) {
        std::fprintf(stderr, "%s", PQerrorMessage(conn));
        std::exit(1);
    }
    Run(conn,
        "SET search_path = hotpath; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit "
        "= off; SET plan_cache_mode = force_generic_plan; SET client_min_messages = warning");
    if (!prepare) return conn;
    const std::map<std::string, std::vector<Oid>> types = {
        {"submit", {kInt8Array, kInt4Array, kTextArray}},
        {"claim", {kInt8, kInt4, kUuid, kInt4Array, kInt8Array}},
        {"settle", {kInt8, kUuid, kInt8Array, kTextArray}}};
    for (auto [name, oids] : types) {
        const std::string& sql = shape.statements.at(name);
        if (sql.find("$9") != std::string::npos)
            oids.insert(oids.end(), {kInt4Array, kTextArray, kInt4, kInt4});
        PQclear(Must(
            conn,
            PQprepare(conn, name.c_str(), sql.c_str(), static_cast<int>(oids.size()), oids.data())
        ));
    }
    return conn;
}

inline PGresult* Call(PGconn* conn, const char* name, const std::vector<std::string>& args) {
    std::vector<const char*> values;
    for (const auto& a : args) values.push_back(a.c_str());
    return Must(
        conn,
        PQexecPrepared(
            conn, name, static_cast<int>(values.size()), values.data(), nullptr, nullptr, 0
        )
    );
}

inline std::string Quoted(const char* text) {
    std::string out = "\"";
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\') out += '\\';
        out += *text;
    }
    return out + '"';
}
template <class F>
std::string Array(long n, F item) {
    std::string out = "{";
    for (long i = 0; i < n; ++i) {
        if (i) out += ',';
        out += item(i);
    }
    return out + '}';
}

inline std::atomic<long> next_id{1};
inline void Submit(PGconn* conn, long n, int lane = 1) {
    const long base = next_id.fetch_add(n);
    static const std::string input = Quoted(kInput);
    PQclear(Call(
        conn,
        "submit",
        {Array(n, [&](long i) { return std::to_string(base + i); }),
         Array(n, [&](long) { return std::to_string(lane); }),
         Array(n, [](long) { return input; })}
    ));
}

struct Worker {
    PGconn* conn;
    long session;
    std::mt19937_64 random{std::random_device{}()};
    std::map<long, long> marks{};  // lane -> highest position claimed
    bool use_mark = true;
    bool complete_claim = false;  // the shape's claim chooses the lanes itself
    std::string lanes = "{1}";    // otherwise: the lanes to try, in order
    std::string types = "{1}", labels = "{}";
    long tenant_quota = 0, first_tenant = 1;

    struct Batch {
        std::string token, lease;
        std::vector<std::string> ids;
        std::vector<int> lanes;
    };
    Batch Claim(long n) {
        char token[40];
        const unsigned long a = random(), b = random();
        std::snprintf(
            token,
            sizeof token,
            "%08lx-%04lx-%04lx-%04lx-%012lx",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xffff,
            b >> 48,
            b & 0xffffffffffff
        );
        std::string mark_lanes = lanes,
                    mark_values =
                        "{" +
                        std::to_string(use_mark && !marks.empty() ? marks.begin()->second : 0) +
                        "}";
        if (complete_claim || lanes != "{1}") {
            std::vector<std::pair<long, long>> known;
            if (use_mark) known.assign(marks.begin(), marks.end());
            mark_lanes = Array(static_cast<long>(known.size()), [&](long i) {
                return std::to_string(known[i].first);
            });
            mark_values = Array(static_cast<long>(known.size()), [&](long i) {
                return std::to_string(known[i].second);
            });
        }
        std::vector<std::string> args = {
            std::to_string(session), std::to_string(n), token, mark_lanes, mark_values};
        if (complete_claim)
            args.insert(
                args.end(),
                {types,
                 labels,
                 std::to_string(tenant_quota ? tenant_quota : n),
                 std::to_string(first_tenant)}
            );
        PGresult* r = Call(conn, "claim", args);
        Batch batch{token, "", {}, {}};
        for (int i = 0; i < PQntuples(r); ++i) {
            batch.ids.push_back(PQgetvalue(r, i, 0));
            batch.lease = PQgetvalue(r, i, 1);
            const int lane = std::atoi(PQgetvalue(r, i, 2));
            batch.lanes.push_back(lane);
            marks[lane] = std::max(marks[lane], std::atol(PQgetvalue(r, i, 3)));
        }
        PQclear(r);
        return batch;
    }
    long TrySettle(const Batch& batch) {
        const long n = static_cast<long>(batch.ids.size());
        PGresult* r = Call(
            conn,
            "settle",
            {batch.lease,
             batch.token,
             Array(n, [&](long i) { return batch.ids[i]; }),
             Array(n, [](long) { return std::string("\"{}\""); })}
        );
        const long accepted = std::atol(PQgetvalue(r, 0, 0));
        PQclear(r);
        return accepted;
    }
    void Settle(const Batch& batch) {
        const long accepted = TrySettle(batch);
        if (accepted != static_cast<long>(batch.ids.size())) {
            std::fprintf(stderr, "settle accepted %ld of %zu\n", accepted, batch.ids.size());
            std::exit(1);
        }
    }
};

}  // namespace hotpath
