#include "store/sqlite/queries.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "base/check.h"
#include "stint_store_lite_queries_embedded.h"

namespace stint::store::lite {

namespace {

using Sections = std::unordered_map<std::string_view, std::string_view>;

void AddSections(std::string_view file, Sections& sections) {
    static constexpr std::string_view kMark = "-- name: ";
    std::size_t at = file.find(kMark);
    while (at != std::string_view::npos) {
        std::size_t name_at = at + kMark.size();
        std::size_t name_end = file.find('\n', name_at);
        std::size_t next = file.find(kMark, name_end);
        std::string_view body =
            file.substr(name_end + 1, next == std::string_view::npos ? next : next - name_end - 1);
        while (!body.empty() && (body.back() == '\n' || body.back() == ' ')) body.remove_suffix(1);
        bool added = sections.emplace(file.substr(name_at, name_end - name_at), body).second;
        CHECK_WHY(added, "two queries of one name");
        at = next;
    }
}

const Sections& AllSections() {
    static const Sections kSections = [] {
        Sections sections;
        for (std::string_view file :
             {queries::k_task,
              queries::k_wait,
              queries::k_event,
              queries::k_flow,
              queries::k_claim,
              queries::k_keys,
              queries::k_period,
              queries::k_registry,
              queries::k_read,
              queries::k_result,
              queries::k_check,
              queries::k_schedule,
              queries::k_resource}) {
            AddSections(file, sections);
        }
        return sections;
    }();
    return kSections;
}

}  // namespace

std::vector<std::string_view> QueryNames() {
    std::vector<std::string_view> names;
    for (const auto& [name, text] : AllSections()) names.push_back(name);
    return names;
}

std::string_view QueryText(std::string_view name) {
    auto found = AllSections().find(name);
    CHECK_WHY(found != AllSections().end(), name);
    return found->second;
}

std::string QueryText(std::string_view name, std::int64_t period) {
    static constexpr std::string_view kPlace = "{p}";
    std::string text(QueryText(name));
    std::string number = std::to_string(period);
    for (std::size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace, at)) {
        text.replace(at, kPlace.size(), number);
    }
    return text;
}

sqlite::Statement& Sql(sqlite::Connection& db, std::string_view name) {
    return db.Cached(name, [name] { return QueryText(name); });
}

sqlite::Statement& Sql(sqlite::Connection& db, std::string_view name, std::int64_t period) {
    std::array<char, 96> key;
    auto end = fmt::format_to_n(key.data(), key.size(), "{}#{}", name, period);
    CHECK(end.size <= key.size());
    return db.Cached(std::string_view(key.data(), end.size), [name, period] {
        return QueryText(name, period);
    });
}

sqlite::Statement& SqlRows(
    sqlite::Connection& db, std::string_view name, std::int64_t period, std::size_t rows
) {
    if (rows == 1) return Sql(db, name, period);
    std::array<char, 96> key;
    auto end = fmt::format_to_n(key.data(), key.size(), "{}*{}#{}", name, rows, period);
    CHECK(end.size <= key.size());
    return db.Cached(std::string_view(key.data(), end.size), [name, period, rows] {
        std::string text = QueryText(name, period);
        const std::size_t begin = text.find("VALUES (") + 7;
        const std::size_t after = text.find(')', begin) + 1;
        CHECK_WHY(begin < after && text[begin] == '(', name);
        const std::string row = ", " + text.substr(begin, after - begin);
        for (std::size_t i = 1; i < rows; ++i) text.insert(after, row);
        return text;
    });
}

sqlite::Statement& SqlAnyOf(sqlite::Connection& db, std::string_view name, std::size_t count) {
    if (count == 1) return Sql(db, name);
    std::array<char, 96> key;
    auto end = fmt::format_to_n(key.data(), key.size(), "{}*{}", name, count);
    CHECK(end.size <= key.size());
    return db.Cached(std::string_view(key.data(), end.size), [name, count] {
        static constexpr std::string_view kOne = "= ?;";
        std::string text(QueryText(name));
        CHECK_WHY(text.ends_with(kOne), name);
        text.resize(text.size() - kOne.size());
        text += "IN (?";
        for (std::size_t i = 1; i < count; ++i) text += ", ?";
        return text + ")";
    });
}

void ForgetPeriod(sqlite::Connection& db, std::int64_t period) {
    std::string tail = fmt::format("#{}", period);
    db.Forget([&tail](std::string_view key) { return key.ends_with(tail); });
}

}  // namespace stint::store::lite
