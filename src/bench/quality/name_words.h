// Words for names ("amber lantern"): everyday words, so that every tokenizer knows them. None of
// them occurs in plain_text().
//
// Threads: constants. Errors: none.
#pragma once

#include <array>
#include <string_view>

namespace slipstream::quality {

inline constexpr std::array<std::string_view, 96> kNameWords = {
    "acorn",    "amber",   "anchor",   "apple",   "arrow",   "autumn",  "badger", "barley",
    "basil",    "basket",  "beach",    "berry",   "blanket", "bread",   "breeze", "brick",
    "bridge",   "bucket",  "butter",   "button",  "cabin",   "camel",   "candle", "canvas",
    "carpet",   "castle",  "cedar",    "cherry",  "clover",  "comet",   "copper", "coral",
    "cotton",   "cradle",  "crane",    "cricket", "crown",   "daisy",   "desert", "diamond",
    "dolphin",  "dragon",  "eagle",    "ember",   "feather", "fiddle",  "flute",  "forest",
    "fountain", "garlic",  "ginger",   "glove",   "goose",   "hammer",  "harbor", "hazel",
    "helmet",   "honey",   "horse",    "island",  "ivory",   "jacket",  "jungle", "kettle",
    "ladder",   "lantern", "lemon",    "linen",   "lizard",  "lobster", "maple",  "marble",
    "meadow",   "mirror",  "mountain", "mustard", "needle",  "ocean",   "olive",  "onion",
    "orchard",  "palace",  "parrot",   "pebble",  "pepper",  "pigeon",  "pillow", "planet",
    "pumpkin",  "rabbit",  "raven",    "ribbon",  "rocket",  "saddle",  "salmon", "silver"};

// Pairs of them that begin alike.
inline constexpr std::array<std::array<std::string_view, 2>, 6> kWordsAlike = {
    {{"basil", "basket"},
     {"bread", "breeze"},
     {"brick", "bridge"},
     {"butter", "button"},
     {"candle", "canvas"},
     {"cradle", "crane"}}};

}  // namespace slipstream::quality
