// Redaction of recordings: credentials in header fields, query parameters and bodies, by their names and forms.
import { REDACTED, redactText } from "@platform/kernel/log";
import type { RecordedFields } from "./recorded-exchange.ts";
import { redactJson } from "./redact-json.ts";
import { redactXml } from "./redact-xml.ts";
import { decodePercent, SecretNames } from "./secret-names.ts";

/** Fields with a name that can be shown and a value that cannot. */
const COOKIE = "cookie";
const SET_COOKIE = "set-cookie";
/** Fields whose value is a URL. */
const URL_FIELDS: ReadonlySet<string> = new Set(["location", "content-location", "referer"]);
/** JSON in a string in JSON, a URL in a parameter of a URL, and so on. */
const NESTED_MAX = 4;
const JSON_START = /^\s*[[{]/;
// The lookbehinds let a pattern start once in a long run of its own characters: all of these read a text once.
const JWT = /(?<![\w-])eyJ[\w-]{4,}\.[\w-]{2,}\.[\w-]*/g;
const URL_PARAMETER = /(?<=[?&;#])([^\s?&;#="'<>\\]{1,256})=([^\s&#"'<>\\]+)/g;
const NAMED_VALUE =
  /(?<![\w.-])(\\{0,8}["']?)([\w.-]{1,64})\1(\s*[:=]\s*)("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|\\{1,8}"[^"]*"?|(?:(?:bearer|basic|digest|dpop|negotiate)\s+)?[^\s,;&"'<>]+)/gi;

/** Redacts what is recorded on one route. */
export class Redactor {
  readonly #names: SecretNames;

  /** `names` are redacted as well: of header fields, parameters and members of bodies, in any case. */
  constructor(names: readonly string[]) {
    this.#names = new SecretNames(names);
  }

  /** Header fields without credentials. Of cookies, names and attributes remain. */
  redactFields(fields: RecordedFields): RecordedFields {
    return fields.map(([name, value]) => [name, this.#redactField(name.toLowerCase(), value)]);
  }

  /** A URL, or path and query, without the values of secret parameters. */
  redactTarget(target: string): string {
    const [base = "", ...fragment] = target.split("#");
    const at = base.indexOf("?");
    const clean =
      at === -1 ? base : `${base.slice(0, at + 1)}${this.#redactParameters(base.slice(at + 1))}`;
    return [clean, ...fragment.map((part) => this.#redactParameters(part))].join("#");
  }

  /**
   * The text of a body of this media type (lower case, no parameters; "" if unknown). Throws if it is malformed or
   * nested too deep.
   */
  redactBody(text: string, type: string): string {
    if (/[/+]json$/.test(type)) return this.#redactJson(text, NESTED_MAX);
    if (/[/+](?:x-ndjson|jsonl|ndjson)$/.test(type)) {
      return text.replaceAll(/[^\n]+/g, (line) =>
        line.trim() === "" ? line : this.#redactJson(line, NESTED_MAX),
      );
    }
    if (type === "application/x-www-form-urlencoded") return this.#redactParameters(text);
    if (/[/+](?:xml|html)$/.test(type)) {
      return redactXml(text, this.#names, (part) => this.#redactString(part, 0));
    }
    if (type === "text/event-stream") {
      return text
        .split(/(?<=\r\n|\n|\r(?!\n))/)
        .map((line) => {
          const [, start, data] = /^(data:[ \t]*)([^\r\n]*)/.exec(line) ?? [];
          if (start === undefined || data === undefined) return this.#redactText(line);
          return `${start}${this.#redactText(data)}${line.slice(start.length + data.length)}`;
        })
        .join("");
    }
    return this.#redactText(text);
  }

  #redactField(name: string, value: string): string {
    if (this.#names.isConfigured(name)) return REDACTED;
    if (name === COOKIE) return value.split(";").map(redactCookie).join(";");
    if (name === SET_COOKIE) {
      const [cookie = "", ...attributes] = value.split(";");
      return [redactCookie(cookie), ...attributes].join(";");
    }
    if (this.#names.has(name)) return REDACTED;
    const clean = this.#redactString(value, NESTED_MAX);
    return URL_FIELDS.has(name) ? this.redactTarget(clean) : clean;
  }

  #redactParameters(text: string): string {
    return text
      .split("&")
      .map((pair) => this.#redactParameter(pair, NESTED_MAX))
      .join("&");
  }

  // Some upstreams separate parameters by a semicolon, too; for others, it is a part of the secret.
  #redactParameter(pair: string, nestedMax: number): string {
    const parts: string[] = [];
    for (const part of pair.split(";")) {
      const at = part.indexOf("=");
      const [name, value] = [part.slice(0, Math.max(0, at)), part.slice(at + 1)];
      if (value !== "" && at !== -1 && this.#names.hasParameter(name)) {
        parts.push(`${name}=${encodeURIComponent(REDACTED)}`);
        break;
      }
      parts.push(at === -1 ? part : `${name}=${this.#redactParameterValue(value, nestedMax)}`);
    }
    return parts.join(";");
  }

  #redactParameterValue(value: string, nestedMax: number): string {
    if (nestedMax === 0) return value;
    const plain = decodePercent(value.replaceAll("+", " "));
    const clean = this.#redactString(plain, nestedMax - 1);
    return clean === plain ? value : encodeURIComponent(clean);
  }

  #redactJson(text: string, nestedMax: number): string {
    return redactJson(text, this.#names, (value) => this.#redactString(value, nestedMax));
  }

  /** A string within something: credentials by their form, and by their names in JSON and URLs. */
  #redactString(text: string, nestedMax: number): string {
    if (nestedMax > 0 && JSON_START.test(text)) {
      try {
        return this.#redactJson(text, nestedMax - 1);
      } catch {
        // Text that only begins like JSON.
        return this.#redactNamedValues(text);
      }
    }
    let clean = redactText(text);
    if (clean.includes("eyJ")) clean = clean.replaceAll(JWT, REDACTED);
    if (!clean.includes("=")) return clean;
    return clean.replaceAll(URL_PARAMETER, (pair) => this.#redactParameter(pair, nestedMax));
  }

  /** Text of any kind. */
  #redactText(text: string): string {
    const clean = this.#redactString(text, NESTED_MAX);
    return JSON_START.test(text) ? clean : this.#redactNamedValues(clean);
  }

  #redactNamedValues(text: string): string {
    return this.#redactString(text, 0).replaceAll(
      NAMED_VALUE,
      (whole, quote: string, name: string, between: string, value: string) => {
        if (!this.#names.has(name) || /\[redacted\]|%5Bredacted%5D/.test(value)) return whole;
        const mark = /^\\*["']/.exec(value)?.[0] ?? "";
        return `${quote}${name}${quote}${between}${mark}${REDACTED}${mark}`;
      },
    );
  }
}

// A cookie without a name is a value.
function redactCookie(cookie: string): string {
  const at = cookie.indexOf("=");
  if (at !== -1) return `${cookie.slice(0, at)}=${REDACTED}`;
  return cookie.replace(/\S.*/s, REDACTED);
}
