// Parsing of store URLs.
#include "base/result.h"
#include "node/open_store.h"

namespace stint::node {

namespace {

constexpr std::string_view kSchemaParameter = "stint_schema=";

bool IsPostgres(std::string_view url) {
    return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

// Calls `each` with every "name=value" after the question mark.
template <class Each>
void ForEachParameter(std::string_view url, Each each) {
    std::size_t mark = url.find('?');
    while (mark != std::string_view::npos) {
        std::size_t end = url.find('&', mark + 1);
        std::size_t length = end == std::string_view::npos ? end : end - mark - 1;
        each(url.substr(mark + 1, length));
        mark = end;
    }
}

bool IsPlainName(std::string_view name) {
    if (name.empty() || name.size() > 63 || (name[0] >= '0' && name[0] <= '9')) return false;
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

Result<StoreUrl> ParsePostgres(std::string_view url) {
    StoreUrl parsed{.kind = StoreUrl::Kind::kPostgres, .path = {}, .connection = {}};
    parsed.connection = std::string(url.substr(0, url.find('?')));
    char separator = '?';
    ForEachParameter(url, [&](std::string_view parameter) {
        if (parameter.starts_with(kSchemaParameter)) {
            parsed.schema = std::string(parameter.substr(kSchemaParameter.size()));
        } else if (!parameter.empty()) {
            parsed.connection += separator;
            parsed.connection += parameter;
            separator = '&';
        }
    });
    if (!IsPlainName(parsed.schema)) {
        return base::MakeError(
            Code::kInvalid,
            "stint_schema is \"{}\"; a schema's name has lower-case letters, digits and _, at most "
            "63",
            parsed.schema
        );
    }
    return parsed;
}

}  // namespace

Result<StoreUrl> ParseStoreUrl(std::string_view url) {
    if (url == "memory:")
        return StoreUrl{.kind = StoreUrl::Kind::kMemory, .path = {}, .connection = {}};
    if (IsPostgres(url)) return ParsePostgres(url);
    constexpr std::string_view kSqlite = "sqlite:";
    if (url.starts_with(kSqlite) && url.size() > kSqlite.size()) {
        return StoreUrl{
            .kind = StoreUrl::Kind::kSqlite,
            .path = std::string(url.substr(kSqlite.size())),
            .connection = {},
        };
    }
    return base::MakeError(
        Code::kInvalid,
        "the store is \"{}\"; it must be sqlite:PATH, postgres://user@host/database or memory:",
        WithoutSecrets(url)
    );
}

std::string WithoutSecrets(std::string_view url) {
    std::string shown(url);
    std::size_t start = shown.find("://");
    if (start != std::string::npos) {
        start += 3;
        std::size_t end = shown.find_first_of("/?", start);
        std::size_t at = shown.rfind('@', end);
        std::size_t colon = shown.find(':', start);
        if (at != std::string::npos && at > start && colon < at) {
            shown.replace(colon + 1, at - colon - 1, "***");
        }
    }
    for (std::string_view name : {"?password=", "&password=", "?sslpassword=", "&sslpassword="}) {
        std::size_t found = shown.find(name);
        if (found == std::string::npos) continue;
        std::size_t begin = found + name.size();
        std::size_t end = std::min(shown.find('&', begin), shown.size());
        shown.replace(begin, end - begin, "***");
    }
    return shown;
}

}  // namespace stint::node
