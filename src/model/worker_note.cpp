#include "model/worker_note.h"

#include <fmt/format.h>

#include <charconv>

#include "model/limits.h"

namespace stint::model {

namespace {

constexpr std::string_view kWithheld = "; withheld", kRoom = "; room";
constexpr std::string_view kQueue = "queue:", kType = "type:";

// Words after a heading, as long as there is place for them.
class Words {
public:
    Words(std::string& text, std::string_view heading) : text_(text), heading_(heading) {}
    void Add(const std::string& word) {
        if (text_.size() + heading_.size() + word.size() + 1 > limits::kWorkerNote) return;
        text_ += heading_;
        heading_ = {};
        (text_ += ' ') += word;
    }

private:
    std::string& text_;
    std::string_view heading_;
};

template <class Each>
void ForWords(std::string_view text, std::string_view heading, Each each) {
    std::size_t at = text.find(heading);
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + heading.size());
    text = text.substr(0, text.find(';'));
    while (!text.empty()) {
        std::size_t space = std::min(text.find(' '), text.size());
        if (space > 0) each(text.substr(0, space));
        text.remove_prefix(std::min(space + 1, text.size()));
    }
}

}  // namespace

std::string NoteText(const WorkerNote& note) {
    std::string text = note.doing;
    Words withheld(text, kWithheld);
    for (const std::string& name : note.withheld) withheld.Add(name);
    Words room(text, kRoom);
    for (const auto& [name, left] : note.queue_room) {
        room.Add(fmt::format("{}{}={}", kQueue, name, left));
    }
    for (const auto& [name, left] : note.type_room) {
        room.Add(fmt::format("{}{}={}", kType, name, left));
    }
    for (const auto& [name, left] : note.resource_room) room.Add(fmt::format("{}={}", name, left));
    return text;
}

WorkerNote NoteOf(std::string_view text) {
    WorkerNote note;
    note.doing = text.substr(0, text.find(';'));
    ForWords(text, kWithheld, [&](std::string_view word) { note.withheld.emplace_back(word); });
    ForWords(text, kRoom, [&](std::string_view word) {
        std::size_t equals = word.rfind('=');
        if (equals == std::string_view::npos) return;
        int left = 0;
        std::from_chars(word.data() + equals + 1, word.data() + word.size(), left);
        std::string_view name = word.substr(0, equals);
        if (name.starts_with(kQueue)) {
            note.queue_room[std::string(name.substr(kQueue.size()))] = left;
        } else if (name.starts_with(kType)) {
            note.type_room[std::string(name.substr(kType.size()))] = left;
        } else {
            note.resource_room[std::string(name)] = left;
        }
    });
    return note;
}

}  // namespace stint::model
