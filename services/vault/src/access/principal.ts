// Principals of policy statements.
import { malformedPolicy } from "./malformed.ts";
import { allowNames, asObject, pickOne, readTexts } from "./policy-document.ts";

/** The caller as principals can name it. */
export interface PolicyPrincipal {
  /** `arn:aws:iam::<account>:user/<name>`, `…:root`; `undefined` for anonymous callers. */
  arn: string | undefined;
  /** Other names of the caller: the account id, the canonical id, the user name. */
  names: readonly string[];
  /** Names of the account of a user: a denial to the account denies each of its users. */
  accountNames: readonly string[];
}

/** A compiled Principal or NotPrincipal. */
export interface CompiledPrincipal {
  matches: (principal: PolicyPrincipal) => boolean;
  isEveryone: boolean;
}

/** Compiles Principal or NotPrincipal. Policies of users, whose `bucket` is undefined, have neither. */
export function compilePrincipal(
  statement: Record<string, unknown>,
  bucket: string | undefined,
): CompiledPrincipal {
  const given = statement["Principal"] ?? statement["NotPrincipal"];
  if (bucket === undefined) {
    if (given !== undefined) throw malformedPolicy("the policy of a user cannot have a Principal");
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

/**
 * `*`, ARNs of the account, of users, of roles and of their sessions, names and ids of users. Patterns are refused, because
 * they would match no principal.
 */
const CALLER =
  /^(?:\*|arn:(?:aws|store):iam::[0-9a-zA-Z]*:(?:root|(?:user|role)\/[\w+=,.@/ -]+)|arn:(?:aws|store):sts::[0-9]*:assumed-role\/[\w+=,.@-]+\/[\w+=,.@-]+|[\w+=,.@-]+)$/;
/** The form of names of each kind. Services and identity providers never call here. */
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
  if (names.length === 0) throw malformedPolicy("Principal is empty");
  return names.map((name) => name.replace(/^arn:store:/, "arn:aws:"));
}
