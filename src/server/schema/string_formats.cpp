#include "server/schema/string_formats.h"

#include <algorithm>
#include <array>
#include <utility>

namespace slipstream {
namespace {

// These are macros because only literals can be concatenated at compile time.
//
// RFC 3339. Leap days exist only in leap years. There are no leap seconds: they depend on
// the time zone.
#define LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE                                                                            \
  "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|" \
  "30)|02-(0[1-9]|1[0-9]|2[0-8]))|" LEAP_YEAR "-02-29)"
#define TIME                                                                           \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):" \
  "[0-5][0-9])"
// RFC 3339, appendix A.
#define DURATION_TIME "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define DURATION_DATE "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
// RFC 1123 without -- (which begins encoded labels). The total is short enough: 61 + 6 * 30 <= 253.
#define HOSTNAME "[A-Za-z0-9](-?[A-Za-z0-9]){0,30}(\\.[A-Za-z0-9](-?[A-Za-z0-9]){0,14}){0,6}"
// RFC 5321's Dot-string, at most 64 characters, at a host name.
#define ATEXT "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
#define EMAIL ATEXT "(\\.?" ATEXT "){0,31}@" HOSTNAME
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 BYTE "(\\." BYTE "){3}"
#define H16 "[0-9A-Fa-f]{1,4}"
// RFC 4291 without the mixed notation.
#define IPV6                                                                                   \
  "((" H16 ":){7}" H16 "|(" H16 ":){1,7}:|(" H16 ":){1,6}:" H16 "|(" H16 ":){1,5}(:" H16       \
  "){1,2}|(" H16 ":){1,4}(:" H16 "){1,3}|(" H16 ":){1,3}(:" H16 "){1,4}|(" H16 ":){1,2}(:" H16 \
  "){1,5}|" H16 ":(:" H16 "){1,6}|:((:" H16 "){1,7}|:))"
#define HEX "[0-9A-Fa-f]"
// RFC 3986 with a registered name or IPv4 address as host.
#define PCT "%" HEX HEX
#define PCHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" PCT ")"
#define AUTHORITY \
  "(([A-Za-z0-9._~!$&'()*+,;=:-]|" PCT ")*@)?([A-Za-z0-9._~!$&'()*+,;=-]|" PCT ")*(:[0-9]*)?"
#define URI                                                                                    \
  "[A-Za-z][A-Za-z0-9+.-]*:(//" AUTHORITY "(/" PCHAR "*)*|/(" PCHAR "+(/" PCHAR "*)*)?|" PCHAR \
  "+(/" PCHAR "*)*|)(\\?(" PCHAR "|[/?])*)?(#(" PCHAR "|[/?])*)?"

using Format = std::pair<std::string_view, std::string_view>;
constexpr std::array kPatterns = {
    Format{"date", "^" DATE "$"},
    Format{"date-time", "^" DATE "T" TIME "$"},
    Format{"duration", "^P(" DURATION_DATE "(" DURATION_TIME ")?|" DURATION_TIME "|[0-9]+W)$"},
    Format{"email", "^" EMAIL "$"},
    Format{"hostname", "^" HOSTNAME "$"},
    Format{"ipv4", "^" IPV4 "$"},
    Format{"ipv6", "^" IPV6 "$"},
    Format{"time", "^" TIME "$"},
    Format{"uri", "^" URI "$"},
    Format{"uuid", "^" HEX "{8}(-" HEX "{4}){3}-" HEX "{12}$"},
};

constexpr std::array<std::string_view, 9> kRefused = {
    "idn-email", "idn-hostname",          "iri",           "iri-reference", "json-pointer",
    "regex",     "relative-json-pointer", "uri-reference", "uri-template",
};

}  // namespace

std::optional<std::string_view> pattern_of_format(std::string_view format) {
  const auto found = std::ranges::find(kPatterns, format, &Format::first);
  if (found == kPatterns.end()) return std::nullopt;
  return found->second;
}

bool is_unsupported_format(std::string_view format) {
  return std::ranges::find(kRefused, format) != kRefused.end();
}

}  // namespace slipstream
