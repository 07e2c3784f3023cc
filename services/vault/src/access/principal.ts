// Whom a policy's statement is for.
import { malformedPolicy } from "./malformed.ts";
import { allowNames, asObject, pickOne, readTexts } from "./policy-document.ts";

/** Who asks, as principals of policies name them. */
export interface PolicyPrincipal {
  /** `arn:aws:iam::<account>:user/<name>`, `…:root`; undefined for anonymous callers. */
  arn: string | undefined;
  /** Other texts that name the caller: the account's id, the canonical id, the user's name. */
  names: readonly string[];
  /** Texts that name the account whose user it is: a denial to the account is one to each of its users. */
  accountNames: readonly string[];
}

/** The principals of a statement, ready to be asked. */
export interface CompiledPrincipal {
  matches: (principal: PolicyPrincipal) => boolean;
  isEveryone: boolean;
}

/** Compiles Principal or NotPrincipal; policies of users, whose `bucket` is undefined, have neither. */
export function compilePrincipal(
  statement: Record<string, unknown>,
  bucket: string | undefined,
): CompiledPrincipal {
  const given = statement["Principal"] ?? statement["NotPrincipal"];
  if (bucket === undefined) {
    if (given !== undefined) throw malformedPolicy("a user's policy has no Principal");
    return { matches: () => true, isEveryone: false };
  }
  const { inverted } = pickOne(statement, "Principal", "NotPrincipal");
  const names = listPrincipals(given);
  const isForAccount = statement["Effect"] === "Deny" && !inverted;
  const isNamed = (name: string, { arn, names: own, accountNames }: PolicyPrincipal): boolean =>
    name === "*" ||
    (arn !== undefined && (name === arn || own.includes(name))) ||
    (isForAccount && accountNames.includes(name));
  const matches = (principal: PolicyPrincipal): boolean =>
    names.some((name) => isNamed(name, principal)) !== inverted;
  return { matches, isEveryone: inverted || names.includes("*") };
}

/** `*`, ARNs of the account and of users, their names and ids; no patterns, which would match nobody. */
const CALLER =
  /^(?:\*|arn:(?:aws|store):iam::[0-9a-zA-Z]*:(?:root|user\/[\w+=,.@/ -]+)|[\w+=,.@-]+)$/;
/** What names of each kind look like; services and identity providers are none that call here. */
const PRINCIPALS: Readonly<Record<string, RegExp>> = {
  AWS: CALLER,
  STORE: CALLER,
  CanonicalUser: /^[\w.@-]+$/,
  Service: /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/,
  Federated: /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|arn:aws:iam::\d{12}:(?:saml|oidc)-provider\/.+)$/,
};

function listPrincipals(given: unknown): string[] {
  if (given === "*") return ["*"];
  const principals = asObject(given, "Principal");
  allowNames(principals, Object.keys(PRINCIPALS), "Principal");
  const names = Object.entries(principals).flatMap(([kind, value]) => {
    const texts = readTexts(value, "Principal");
    const bad = texts.find((text) => !PRINCIPALS[kind]!.test(text));
    if (bad !== undefined) throw malformedPolicy(`the principal ${bad} is not valid`);
    return kind === "Service" || kind === "Federated"
      ? texts.map((text) => `${kind}:${text}`)
      : texts;
  });
  if (names.length === 0) throw malformedPolicy("Principal names nobody");
  return names.map((name) => name.replace(/^arn:store:/, "arn:aws:"));
}
