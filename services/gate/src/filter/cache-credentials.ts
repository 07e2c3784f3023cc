// Cookies and other credentials of a request that the cache must not mix: which select a response, which forbid to share it.
import { Known, type RequestHead } from "@platform/http1";
import { isSecretName } from "@platform/kernel/log";
import type { GateExchange } from "../exchange/exchange.ts";
import type { CacheSpec, RouteSpec } from "../shared-state/index.ts";

const NONE = -1;
/** Separates values in a key: no field value contains it. */
const SEPARATOR = "\u0001";

/** Fields that may hold credentials; the others with a known name do not, or are read by themselves. */
const UNJUDGED: ReadonlySet<number> = new Set([Known.Other, Known.XApiKey, Known.Apikey]);

/** Credentials of one request. */
export interface CacheCredentials {
  /** Part of the key: the values of the cookies that select a response. */
  readonly key: string;
  /** Others reach the upstream, which no key contains. */
  readonly isPersonal: boolean;
}

const WITHOUT: CacheCredentials = { key: "", isPersonal: false };

/** Reads the credentials of the requests of a route. */
export class CredentialReader {
  readonly #spec: CacheSpec;
  readonly #ignored: ReadonlySet<string>;
  readonly #ignoredStarts: readonly string[];
  /** Fields that do not reach the upstream as the client has sent them. */
  readonly #cut: ReadonlySet<string>;
  /** The step of sign-in writes the cookies for the upstream. */
  readonly #isSignedIn: boolean;

  constructor(spec: CacheSpec, { auth, cutFields }: RouteSpec) {
    const { ignoredCookies } = spec;
    this.#spec = spec;
    this.#ignored = new Set(ignoredCookies.filter((name) => !name.endsWith("*")));
    this.#ignoredStarts = ignoredCookies.flatMap((name) =>
      name.endsWith("*") ? [name.slice(0, -1)] : [],
    );
    this.#cut = new Set(cutFields.map((name) => name.toLowerCase()));
    this.#isSignedIn = auth.type === "oidc";
  }

  /** Reads the cookies and the fields of a request. */
  read(exchange: GateExchange): CacheCredentials {
    const { head, userData } = exchange;
    // Its upstream gets the certificate (RFC 9440 section 2.4).
    const isCertified = exchange.connection.tls?.clientCertificate?.raw !== undefined;
    const hasSecret = isCertified || this.#hasSecretField(head);
    const cookies = this.#isSignedIn ? userData.cookies : joinCookies(head);
    if (cookies === "") return hasSecret ? { key: "", isPersonal: true } : WITHOUT;
    const { keyCookies, ignoresCookies } = this.#spec;
    const values = keyCookies.map((): string[] => []);
    let isPersonal = hasSecret;
    for (const pair of cookies.split(";")) {
      const at = pair.indexOf("=");
      const name = (at === -1 ? pair : pair.slice(0, at)).trim();
      const key = keyCookies.indexOf(name);
      if (key !== -1) values[key]!.push(pair.trim());
      else if (!ignoresCookies && !this.#isIgnored(name)) isPersonal = true;
    }
    const key = keyCookies.length === 0 ? "" : values.map((each) => each.join(";")).join(SEPARATOR);
    return { key: key === "" ? "" : `${SEPARATOR}${key}`, isPersonal };
  }

  #isIgnored(name: string): boolean {
    if (name === "" || this.#ignored.has(name)) return true;
    return this.#ignoredStarts.some((start) => name.startsWith(start));
  }

  // Authorization has rules of its own (RFC 9111 section 3.5).
  #hasSecretField({ fields }: RequestHead): boolean {
    for (let index = 0; index < fields.count; index++) {
      if (!UNJUDGED.has(fields.knownAt(index)) && !fields.isAlias(index)) continue;
      const name = fields.name(index).toLowerCase().replaceAll("_", "-");
      const isSecret = name === "apikey" || isSecretName(name);
      if (isSecret && !this.#cut.has(name) && !fields.isNominated(index)) return true;
    }
    return false;
  }
}

function joinCookies({ fields }: RequestHead): string {
  let joined = "";
  for (let line = fields.first(Known.Cookie); line !== NONE; line = fields.next(line)) {
    joined = joined === "" ? fields.value(line) : `${joined};${fields.value(line)}`;
  }
  return joined;
}
