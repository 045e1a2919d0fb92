#include "model/match/lexer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/result.h"
#include "base/text.h"

namespace stint::model::match {

namespace {

using base::MakeError;

struct Spelling {
    std::string_view text;
    Word word;
};
// Longer ones first: "<=" is not "<" and then "=".
constexpr std::array<Spelling, 17> kSymbols = {{
    {"==", Word::kEqual},
    {"!=", Word::kNotEqual},
    {"<>", Word::kNotEqual},
    {"<=", Word::kLessEqual},
    {">=", Word::kGreaterEqual},
    {"&&", Word::kAnd},
    {"||", Word::kOr},
    {"=", Word::kEqual},
    {"<", Word::kLess},
    {">", Word::kGreater},
    {"!", Word::kNot},
    {".", Word::kDot},
    {",", Word::kComma},
    {"(", Word::kOpen},
    {")", Word::kClose},
    {"[", Word::kOpenBracket},
    {"]", Word::kCloseBracket},
}};
constexpr std::array<Spelling, 7> kKeywords = {{
    {"and", Word::kAnd},
    {"or", Word::kOr},
    {"not", Word::kNot},
    {"in", Word::kIn},
    {"startsWith", Word::kStartsWith},
    {"endsWith", Word::kEndsWith},
    {"contains", Word::kContains},
}};

bool IsDigit(char c) {
    return c >= '0' && c <= '9';
}
bool BeginsName(char c) {
    // Bytes above 127 belong to letters of other scripts.
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           static_cast<unsigned char>(c) >= 0x80;
}
bool IsSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::optional<Word> Keyword(std::string_view name) {
    for (const Spelling& keyword : kKeywords) {
        if (base::EqualIgnoringCase(name, keyword.text)) return keyword.word;
    }
    return std::nullopt;
}

std::optional<base::Json> Constant(std::string_view name) {
    if (base::EqualIgnoringCase(name, "true")) return base::Json(true);
    if (base::EqualIgnoringCase(name, "false")) return base::Json(false);
    if (base::EqualIgnoringCase(name, "null")) return base::Json(nullptr);
    return std::nullopt;
}

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Result<std::vector<Token>> All() {
        std::vector<Token> tokens;
        while (true) {
            while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
            auto token = Next();
            if (!token) return token.error();
            bool end = token->word == Word::kEnd;
            tokens.push_back(std::move(*token));
            if (end) return tokens;
        }
    }

private:
    Result<Token> Next() {
        if (at_ == text_.size()) return Token{Word::kEnd, {}, Column()};
        char c = text_[at_];
        if (c == '\'' || c == '"') return String(c);
        bool negative = c == '-' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1]);
        if (IsDigit(c) || negative) return Number();
        if (BeginsName(c)) return Name();
        for (const Spelling& symbol : kSymbols) {
            if (text_.substr(at_).starts_with(symbol.text))
                return Take(symbol.word, symbol.text.size());
        }
        return MakeError(
            Code::kInvalid,
            "column {}: {} is no part of the match language; strings are written in quotes: 'text'",
            Column(),
            base::Quoted(text_.substr(at_, 1))
        );
    }

    // Where a person finds it: in characters. All but the first byte of one are 10xxxxxx.
    std::size_t Column() {
        for (; counted_ < at_; ++counted_) {
            if ((static_cast<unsigned char>(text_[counted_]) & 0xc0) != 0x80) ++characters_;
        }
        return characters_ + 1;
    }

    Token Take(Word word, std::size_t size) {
        Token token{word, text_.substr(at_, size), Column()};
        at_ += size;
        return token;
    }

    Token Name() {
        std::size_t end = at_;
        while (end < text_.size() && (BeginsName(text_[end]) || IsDigit(text_[end]))) ++end;
        std::string_view name = text_.substr(at_, end - at_);
        if (auto constant = Constant(name)) {
            Token token = Take(Word::kValue, name.size());
            token.value = std::move(*constant);
            return token;
        }
        return Take(Keyword(name).value_or(Word::kName), name.size());
    }

    Result<Token> String(char quote) {
        std::string value;
        std::size_t end = at_ + 1;
        while (true) {
            if (end == text_.size()) {
                return MakeError(
                    Code::kInvalid,
                    "column {}: the string that begins here has no closing {}",
                    Column(),
                    quote
                );
            }
            if (text_[end] == quote) {
                if (end + 1 == text_.size() || text_[end + 1] != quote) break;
                ++end;  // a doubled quote stands for itself
            }
            value += text_[end++];
        }
        Token token = Take(Word::kValue, end + 1 - at_);
        token.value = std::move(value);
        return token;
    }

    Result<Token> Number() {
        std::size_t end = at_ + 1;
        auto exponent_sign = [&] {
            return (text_[end] == '-' || text_[end] == '+') &&
                   (text_[end - 1] == 'e' || text_[end - 1] == 'E');
        };
        while (end < text_.size() && (IsDigit(text_[end]) || text_[end] == '.' ||
                                      text_[end] == 'e' || text_[end] == 'E' || exponent_sign())) {
            ++end;
        }
        Token token = Take(Word::kValue, end - at_);
        const char* last = token.text.data() + token.text.size();
        if (token.text.find_first_of(".eE") == std::string_view::npos) {
            std::int64_t whole = 0;
            auto [stop, fault] = std::from_chars(token.text.data(), last, whole);
            token.value = whole;
            if (fault == std::errc{} && stop == last) return token;
            std::uint64_t large = 0;
            auto [end_of, overflow] = std::from_chars(token.text.data(), last, large);
            token.value = large;
            if (overflow == std::errc{} && end_of == last) return token;
            return MakeError(
                Code::kInvalid,
                "column {}: {} is out of range; whole numbers go from -9223372036854775808 to "
                "18446744073709551615, those beyond are written with an exponent: 1e20",
                token.column,
                token.text
            );
        } else {
            double number = 0;
            auto [stop, fault] = std::from_chars(token.text.data(), last, number);
            token.value = number;
            if (fault == std::errc{} && stop == last && std::isfinite(number)) return token;
        }
        return MakeError(
            Code::kInvalid,
            "column {}: {} is not a number that can be compared",
            token.column,
            token.text
        );
    }

    const std::string_view text_;
    std::size_t at_ = 0;
    std::size_t counted_ = 0;  // bytes, and the characters that they are
    std::size_t characters_ = 0;
};

}  // namespace

Result<std::vector<Token>> Lex(std::string_view text) {
    return Lexer(text).All();
}

Error Unexpected(const Token& token, std::string_view expected) {
    if (token.word == Word::kEnd) {
        return MakeError(
            Code::kInvalid, "column {}: expected {}, found the end", token.column, expected
        );
    }
    return MakeError(
        Code::kInvalid, "column {}: expected {}, found {}", token.column, expected, token.text
    );
}

bool IsPlainName(std::string_view name) {
    if (name.empty() || !BeginsName(name.front()) || Keyword(name) || Constant(name)) return false;
    for (char c : name) {
        if (!BeginsName(c) && !IsDigit(c)) return false;
    }
    return true;
}

}  // namespace stint::model::match
