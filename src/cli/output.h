// Standard output is data: a table for people, JSON or ids for programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace stint::cli {

enum class Format : std::uint8_t { kTable, kJson, kJsonl, kIds, kNone };
Format FormatNamed(std::string_view name);  // one that the configuration has accepted

// auto: colour when standard output is a terminal that can, unless NO_COLOR; FORCE_COLOR and
// CLICOLOR_FORCE win over the terminal.
bool WantColor(std::string_view setting);

enum class Tint : std::uint8_t { kPlain, kGood, kBad, kWarn, kBusy, kFaint };

struct Cell {
    std::string text;
    Tint tint = Tint::kPlain;
};

// One answer that is a list: the same things as rows, as objects and as ids.
struct Listing {
    std::string name;  // the member that holds the array in JSON
    std::vector<std::string> headers;
    std::vector<std::vector<Cell>> rows;
    std::vector<base::OrderedJson> objects;
    std::vector<std::string> ids;
    base::OrderedJson extra = base::OrderedJson::object();  // further members of the JSON body
    bool headers_always = false;                            // also when there are no rows
};

class Output {
public:
    Output(Format format, bool color) : format_(format), color_(color) {}

    Format format() const { return format_; }
    bool color() const { return color_; }

    void Print(const Listing& listing) const;
    // A single thing: "name  value" lines, one object.
    void Print(
        const std::vector<std::pair<std::string, Cell>>& facts,
        const base::OrderedJson& object,
        const std::string& id
    ) const;
    void Line(std::string_view text) const;  // as it is, with a newline

private:
    void PrintTable(const Listing& listing) const;
    std::string Paint(const Cell& cell) const;

    Format format_;
    bool color_;
};

// Columns a text takes on a terminal; UTF-8 characters count one each.
std::size_t DisplayWidth(std::string_view text);

// At most `width` columns, with … where it is cut; control characters become spaces.
std::string Shorten(std::string_view text, std::size_t width);

}  // namespace stint::cli
