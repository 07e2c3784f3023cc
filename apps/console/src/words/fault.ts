// Words for invalid values, by the code and the parameters that services send with them.
import { language, t } from "./words.ts";

/** An invalid value, as services describe it. */
export interface DescribedFault {
  /** English sentence of the service. */
  message: string;
  code?: string;
  params?: Readonly<Record<string, string | number>>;
}

/**
 * The words for a fault in a language other than English; undefined if there is only the service's sentence. In English
 * that sentence is more exact than the words for its code.
 */
export function describeFault(fault: DescribedFault): string | undefined {
  return language() === "en" ? undefined : wordFault(fault);
}

function wordFault({ code, params = {} }: DescribedFault): string | undefined {
  switch (code) {
    case "required":
      return t("Required");
    case "wrong_type":
      return wordType(String(params["expected"]));
    case "too_short":
      return params["min"] === 1 ? t("Required") : t("At least {min} characters", params);
    case "too_long":
      return t("At most {max} characters", params);
    case "too_few":
      return t("At least {min} items", params);
    case "too_many":
      return t("At most {max} items", params);
    case "too_small":
      return params["above"] === undefined
        ? t("At least {min}", params)
        : t("More than {above}", params);
    case "too_large":
      return params["below"] === undefined
        ? t("At most {max}", params)
        : t("Less than {below}", params);
    case "not_multiple":
      return t("A multiple of {of}", params);
    case "wrong_format":
      return wordFormat(String(params["format"]));
    case "not_allowed_value":
      return t("One of: {allowed}", params);
    case "unknown_member":
      return t("Unknown: {names}", params);
    case "json_syntax":
      return t("Not valid JSON");
    case "regex":
      return wordPattern(String(params["reason"]), params["at"]);
    default:
      return code === undefined ? undefined : wordOwnCode(code, params);
  }
}

function wordType(expected: string): string | undefined {
  switch (expected) {
    case "string":
      return t("A text is expected");
    case "number":
      return t("A number is expected");
    case "int":
      return t("A whole number is expected");
    case "boolean":
      return t("Yes or no is expected");
    case "array":
      return t("A list is expected");
    case "object":
    case "record":
      return t("An object is expected");
    default:
      return undefined;
  }
}

// Other formats are regular expressions: the service's sentence describes them.
function wordFormat(format: string): string | undefined {
  switch (format) {
    case "email":
      return t("An email address, such as ann@example.com");
    case "url":
      return t("A URL, such as https://example.com/path");
    case "datetime":
      return t("A date with time, such as 2026-01-31T12:00:00Z");
    case "uuid":
      return t("A UUID is expected");
    default:
      return undefined;
  }
}

// Reasons of RE2, and the part of the expression.
function wordPattern(reason: string, at: string | number | undefined): string {
  const known: Readonly<Record<string, string>> = {
    "missing closing )": t("a closing ) is missing"),
    "missing closing ]": t("a closing ] is missing"),
    "unexpected )": t("a ) has no ("),
    "missing argument to repetition operator": t("nothing to repeat"),
    "invalid nested repetition operator": t("a repetition of a repetition"),
    "invalid repeat count": t("more repetitions than allowed"),
    "invalid escape sequence": t("unknown escape sequence"),
    "invalid character class": t("unknown class of characters"),
    "invalid character class range": t("unknown class or range of characters"),
    "invalid named capture": t("a group with an invalid name"),
    "duplicate capture group name": t("two groups of one name"),
    "invalid or unsupported Perl syntax": t("not supported, such as look-around"),
    "trailing backslash at end of expression": t("a backslash at the end"),
  };
  const words = Object.hasOwn(known, reason) ? known[reason]! : reason;
  const part = at === undefined ? "" : `: ${at}`;
  return `${t("A regular expression (RE2) is expected")}: ${words}${part}`;
}

function wordOwnCode(
  code: string,
  params: Readonly<Record<string, string | number>>,
): string | undefined {
  const known: Readonly<Record<string, string>> = {
    path_prefix: t("A path that begins with /, without query, spaces and empty segments"),
    upstream_url: t(
      "An http or https URL, such as http://127.0.0.1:9000, without password and query",
    ),
    host_name: t("A host name without port, such as api.example.com"),
    http_method: t("A method in upper case, such as GET"),
    one_of_members: t("Exactly one is required of: {names}", params),
    not_together: t("Not together with {other}", params),
    only_together: t("Only together: {names}", params),
    not_distinct: t("Each only once"),
    no_weight: t("One weight at least must be above 0"),
    canary_targets: t("Requires exactly two weighted targets"),
    not_available: t("Not in this version"),
    username: t("1 to 64 letters, digits and . _ @ + -, with a letter or a digit first"),
    deceptive_name: t("Contains characters that deceive readers"),
    password_common: t("One of the most common passwords"),
    password_like_name: t("Too similar to the name or the address"),
    password_like_service: t("Too similar to the name of this service"),
    topic_name: t(
      "A name without spaces, quotes, slashes and : * # + $, at most 249 bytes, without __ in front",
    ),
    bucket_name: t("3 to 63 lower-case letters, digits, dots and hyphens; no IP address"),
  };
  return Object.hasOwn(known, code) ? known[code] : undefined;
}
