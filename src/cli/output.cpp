#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "cli/exit_code.h"

namespace stint::cli {

namespace {

bool Set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

std::string_view Code(Tint tint) {
    switch (tint) {
        case Tint::kPlain:
            return "";
        case Tint::kGood:
            return "\x1b[32m";
        case Tint::kBad:
            return "\x1b[31m";
        case Tint::kWarn:
            return "\x1b[33m";
        case Tint::kBusy:
            return "\x1b[36m";
        case Tint::kFaint:
            return "\x1b[2m";
    }
    return "";
}

void Write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
    // A reader that has seen enough (`stint … | head`) is told nothing, as with every filter.
    if (errno == EPIPE) throw CommandError(kReaderGone, "");
    throw CommandError(kFailed, "cannot write to standard output");
}

}  // namespace

Format FormatNamed(std::string_view name) {
    if (name == "json") return Format::kJson;
    if (name == "jsonl") return Format::kJsonl;
    if (name == "ids") return Format::kIds;
    if (name == "none") return Format::kNone;
    CHECK(name == "table");
    return Format::kTable;
}

bool WantColor(std::string_view setting) {
    if (setting == "always") return true;
    if (setting == "never" || Set("NO_COLOR")) return false;
    if (Set("FORCE_COLOR") || Set("CLICOLOR_FORCE")) return true;
    const char* terminal = std::getenv("TERM");
    if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
    return isatty(STDOUT_FILENO) == 1;
}

std::size_t DisplayWidth(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

std::string Shorten(std::string_view text, std::size_t width) {
    std::string shown;
    std::size_t columns = 0;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t next = i + 1;
        while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80)
            ++next;
        if (columns + 1 == width && next < text.size()) return shown + "…";
        unsigned char first = static_cast<unsigned char>(text[i]);
        if (first < 0x20 || first == 0x7F) {
            shown += ' ';
        } else {
            shown += text.substr(i, next - i);
        }
        ++columns;
        i = next;
    }
    return shown;
}

std::string Output::Paint(const Cell& cell) const {
    if (!color_ || cell.tint == Tint::kPlain) return cell.text;
    return fmt::format("{}{}\x1b[0m", Code(cell.tint), cell.text);
}

void Output::Line(std::string_view text) const {
    Write(fmt::format("{}\n", text));
}

void Output::PrintTable(const Listing& listing) const {
    if (listing.rows.empty() && !listing.headers_always) return;
    std::vector<std::size_t> widths;
    for (const std::string& header : listing.headers) widths.push_back(DisplayWidth(header));
    for (const auto& row : listing.rows) {
        CHECK(row.size() == widths.size());
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
        }
    }
    auto print = [&](const std::vector<Cell>& row) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += Paint(row[i]);
            // The last column is not padded: no trailing spaces.
            if (i + 1 < row.size()) line.append(widths[i] - DisplayWidth(row[i].text) + 2, ' ');
        }
        while (line.ends_with(' ')) line.pop_back();
        Line(line);
    };
    std::vector<Cell> head;
    for (const std::string& header : listing.headers) head.push_back({header, Tint::kFaint});
    print(head);
    for (const auto& row : listing.rows) print(row);
}

void Output::Print(const Listing& listing) const {
    switch (format_) {
        case Format::kTable:
            PrintTable(listing);
            return;
        case Format::kJson: {
            base::OrderedJson body = base::OrderedJson::object();
            body[listing.name] = listing.objects;
            body.update(listing.extra);
            Line(base::JsonText(body, 2));
            return;
        }
        case Format::kJsonl:
            for (const auto& object : listing.objects) Line(base::JsonText(object));
            return;
        case Format::kIds:
            for (const std::string& id : listing.ids) Line(id);
            return;
        case Format::kNone:
            return;
    }
}

void Output::Print(
    const std::vector<std::pair<std::string, Cell>>& facts,
    const base::OrderedJson& object,
    const std::string& id
) const {
    switch (format_) {
        case Format::kTable: {
            std::size_t width = 0;
            for (const auto& [name, cell] : facts) width = std::max(width, DisplayWidth(name));
            for (const auto& [name, cell] : facts) {
                std::string line = Paint({name, Tint::kFaint});
                line.append(width - DisplayWidth(name) + 2, ' ');
                Line(line + Paint(cell));
            }
            return;
        }
        case Format::kJson:
            Line(base::JsonText(object, 2));
            return;
        case Format::kJsonl:
            Line(base::JsonText(object));
            return;
        case Format::kIds:
            Line(id);
            return;
        case Format::kNone:
            return;
    }
}

}  // namespace stint::cli
