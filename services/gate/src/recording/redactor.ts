// Redaction of recordings: credentials in header fields, query parameters and bodies, by their names.
import { isSecretName, REDACTED, redactText } from "@platform/kernel/log";
import type { RecordedFields } from "./recorded-exchange.ts";

/** Parameters of queries and forms that carry one-time codes and signatures. */
const SECRET_PARAMETER =
  /^(?:code|key|sig|hmac|ticket|saml(?:request|response)|x-amz-credential)$/i;
/** Fields with a name that can be shown and a value that cannot. */
const COOKIE = "cookie";
const SET_COOKIE = "set-cookie";
/** Fields whose value is a URL. */
const URL_FIELDS: ReadonlySet<string> = new Set(["location", "content-location", "referer"]);
/** Names of numbers that are no credentials. */
const SECRET_NUMBER = /passw(?:or)?d|passphrase|secret|\bpin\b/i;
const DEPTH_MAX = 128;
const XML_ELEMENT = /<([\w:.-]+)((?:\s[^<>]*)?)>([^<>]+)<\//g;
const EVENT_DATA = /^(data:[ ]?)(\{.*)$/gm;

/** Redacts what is recorded on one route. */
export class Redactor {
  readonly #names: ReadonlySet<string>;

  /** `names` are redacted as well: of header fields, parameters and members of bodies, in any case. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** Header fields without credentials. Of cookies, names and attributes remain. */
  redactFields(fields: RecordedFields): RecordedFields {
    return fields.map(([name, value]) => [name, this.#redactField(name.toLowerCase(), value)]);
  }

  /** Path and query without the values of secret parameters. */
  redactTarget(target: string): string {
    const at = target.indexOf("?");
    if (at === -1) return target;
    return `${target.slice(0, at + 1)}${this.#redactParameters(target.slice(at + 1))}`;
  }

  /** The text of a body of this media type (lower case, no parameters). Throws if it is malformed or nested too deep. */
  redactBody(text: string, type: string): string {
    if (/[/+]json$/.test(type)) return this.#redactJson(text);
    if (/[/+](?:x-ndjson|jsonl|ndjson)$/.test(type)) {
      return text.replaceAll(/[^\n]+/g, (line) =>
        line.trim() === "" ? line : this.#redactJson(line),
      );
    }
    if (type === "application/x-www-form-urlencoded") return this.#redactParameters(text);
    if (/[/+]xml$/.test(type)) {
      return text.replaceAll(XML_ELEMENT, (element, name: string, rest: string) =>
        this.#isSecret(name) ? `<${name}${rest}>${REDACTED}</` : element,
      );
    }
    if (type === "text/event-stream") {
      return text.replaceAll(EVENT_DATA, (_line, start: string, data: string) => {
        try {
          return `${start}${this.#redactJson(data)}`;
        } catch {
          // Data that only begins like JSON.
          return `${start}${redactText(data)}`;
        }
      });
    }
    return redactText(text);
  }

  #redactField(name: string, value: string): string {
    if (this.#names.has(name)) return REDACTED;
    if (name === COOKIE) return value.replaceAll(/=[^;]*/g, `=${REDACTED}`);
    if (name === SET_COOKIE) return value.replace(/=[^;]*/, `=${REDACTED}`);
    if (isSecretName(name)) return REDACTED;
    return URL_FIELDS.has(name) ? this.redactTarget(redactText(value)) : redactText(value);
  }

  #redactParameters(text: string): string {
    return text.replaceAll(/([^&=#]+)=([^&#]*)/g, (pair, name: string) => {
      const isSecret = SECRET_PARAMETER.test(name) || this.#isSecret(decodeName(name));
      return isSecret ? `${name}=${encodeURIComponent(REDACTED)}` : pair;
    });
  }

  /** The text itself if nothing is redacted, so that numbers and spaces stay as they are. */
  #redactJson(text: string): string {
    const found = { count: 0 };
    const clean = this.#redactValue(JSON.parse(text), false, 0, found);
    return found.count === 0 ? text : JSON.stringify(clean);
  }

  #redactValue(
    value: unknown,
    isSecret: boolean,
    depth: number,
    found: { count: number },
  ): unknown {
    if (depth > DEPTH_MAX) throw new Error("nested too deep");
    if (Array.isArray(value)) {
      return value.map((item: unknown) => this.#redactValue(item, isSecret, depth + 1, found));
    }
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]: [string, unknown]) => [
          name,
          this.#redactValue(item, isSecret || this.#isSecretMember(name, item), depth + 1, found),
        ]),
      );
    }
    if (!isSecret || value === null || typeof value === "boolean" || value === "") return value;
    found.count++;
    return REDACTED;
  }

  #isSecretMember(name: string, value: unknown): boolean {
    if (this.#names.has(name.toLowerCase())) return true;
    // Such as max_tokens.
    return typeof value === "number" ? SECRET_NUMBER.test(name) : isSecretName(name);
  }

  #isSecret(name: string): boolean {
    return this.#names.has(name.toLowerCase()) || isSecretName(name);
  }
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}
