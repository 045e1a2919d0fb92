// Fan-out: an album is made of pictures, each by a subtask of its own, and finished when they all
// are. The worker is free meanwhile. A picture that cannot be made does not spoil the album.
#include <stint/stint.h>

#include <iostream>

struct Picture {
    std::string file;
    int width = 0;
};
struct Thumbnail {
    std::string file;
    int bytes = 0;
};
struct Album {
    std::string name;
    std::vector<std::string> files;
};
struct Page {
    int pictures = 0;
    int bytes = 0;
    std::vector<std::string> missing;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Picture, file, width)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Thumbnail, file, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Album, name, files)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Page, pictures, bytes, missing)

inline constexpr stint::Task<Picture, Thumbnail> kThumbnail{"picture.thumbnail"};
inline constexpr stint::Task<Album, Page> kAlbum{"album.make"};

namespace {

Thumbnail MakeThumbnail(stint::Context&, const Picture& picture) {
    if (!picture.file.ends_with(".jpg")) {
        throw stint::Permanent(picture.file + " is no picture");
    }
    return {.file = "small/" + picture.file, .bytes = picture.width * 10};
}

// [stages]
struct MakeAlbum {
    stint::Outcome<Page> Start(stint::Context& context, const Album& album) {
        for (const std::string& file : album.files) {
            context.Subtask(kThumbnail, {.file = file, .width = 200});
        }
        return stint::Blocked{};  // the subtasks and this wait are one transaction
    }
    stint::Outcome<Page> Resume(stint::Context& context, const Album&) {
        Page page;
        for (const Thumbnail& made : context.OutputsOf(kThumbnail)) {
            ++page.pictures;
            page.bytes += made.bytes;
        }
        return page;
    }
    stint::Outcome<Page>
    Error(stint::Context& context, const Album& album, const stint::SubtaskFailure&) {
        Page page = std::get<Page>(Resume(context, album));
        for (std::size_t i = 0; i < album.files.size(); ++i) {
            if (!context.waited().at(i).complete) page.missing.push_back(album.files[i]);
        }
        return page;
    }
};
// [stages]

}  // namespace

int main() {
    stint::Engine engine({.store = "sqlite:album.db"});
    engine.Handle(kThumbnail, MakeThumbnail);
    engine.Handle(kAlbum, MakeAlbum{});
    engine.Start();

    Album album{.name = "summer", .files = {"lake.jpg", "notes.txt", "hill.jpg", "sea.jpg"}};
    auto run = engine.Submit(kAlbum, album).value();
    Page page = run.Wait().value();
    std::cout << album.name << ": " << page.pictures << " pictures, " << page.bytes << " bytes\n";
    for (const std::string& file : page.missing) std::cout << "missing: " << file << '\n';
    engine.Stop();
}
