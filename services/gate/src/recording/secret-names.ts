// Names of fields, parameters and members whose values are not recorded.
import { isSecretName } from "@platform/kernel/log";

/** Names that are too common in logs to be redacted there, but hold credentials in requests. */
const SECRET_NAME =
  /assertion|verifier|pass(?:code|wd)|(?<![a-z])pwd|(?:device|user|auth|authorization|recovery|backup|verification)[-_]?code|(?:access|auth|account|shared|signing|encryption)[-_]?key|(?<![a-z])(?:x[-_]auth|otp|totp|mfa|cvv2?|cvc2?)(?![a-z])/i;
/** Parameters of queries and forms that carry one-time codes and signatures. */
const SECRET_PARAMETER =
  /^(?:code|key|sig|hmac|ticket|saml(?:request|response)|x-amz-credential)$/i;
/** Names of numbers that are credentials: `max_tokens` is not one. */
const SECRET_NUMBER =
  /passw(?:or)?d|pass(?:code|wd)|passphrase|secret|\b(?:pin|otp|cvv2?|cvc2?)\b/i;

/** The names that one route redacts. */
export class SecretNames {
  readonly #names: ReadonlySet<string>;

  /** `names` are redacted in addition, in any case. */
  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** True for a name that the route's configuration contains. */
  isConfigured(name: string): boolean {
    return this.#names.has(name.toLowerCase());
  }

  /** True for the name of a header field, an element or a member with text. */
  has(name: string): boolean {
    return this.isConfigured(name) || isSecretName(name) || SECRET_NAME.test(name);
  }

  /** True for the name of a member whose value is a number. */
  hasNumber(name: string): boolean {
    return this.isConfigured(name) || SECRET_NUMBER.test(name);
  }

  /** True for a parameter, however often its name is percent-encoded: upstreams differ in how often they decode. */
  hasParameter(name: string): boolean {
    const once = decodePercent(name.replaceAll("+", " "));
    return [name, once, decodePercent(once)].some(
      (each) => SECRET_PARAMETER.test(each.trim()) || this.has(each.trim()),
    );
  }
}

/** Decodes the valid escapes of a text; invalid ones and bytes that are not UTF-8 stay visible. */
export function decodePercent(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll("%", ""), "hex").toString("utf8"),
  );
}
