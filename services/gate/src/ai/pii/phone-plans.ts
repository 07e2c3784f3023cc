// Validity of phone numbers by the numbering plans of libphonenumber, whose patterns are compiled once: its own check compiles
// them, and takes a number apart with many more, on every call.
import metadata from "libphonenumber-js/metadata.min";

const NATIONAL_DIGITS_MIN = 2;
const NATIONAL_DIGITS_MAX = 17;
const CALLING_CODE_DIGITS_MAX = 3;

/** Places in the list that describes the plan of a country (METADATA.md of libphonenumber-js, version 4). */
const Place = {
  CallingCode: 0,
  InternationalPrefix: 1,
  Pattern: 2,
  Lengths: 3,
  NationalPrefix: 5,
  PrefixForParsing: 7,
  PrefixRule: 8,
  LeadingDigits: 10,
  Types: 11,
} as const;

type PlanData = readonly unknown[];
type TypeData = readonly [pattern: string, lengths?: readonly number[]] | 0;

interface NumberType {
  readonly pattern: RegExp;
  readonly lengths: readonly number[];
}

/** The numbers of a country, or of a calling code without countries. Patterns match national numbers. */
interface NumberingPlan {
  readonly callingCode: string;
  readonly internationalPrefix: RegExp | undefined;
  readonly pattern: RegExp;
  readonly lengths: readonly number[];
  /** Dialled before a national number; the rule says what the two become if that is not the number alone. */
  readonly prefix: RegExp | undefined;
  readonly prefixRule: string | undefined;
  readonly leadingDigits: RegExp | undefined;
  /** Undefined if the pattern says everything. */
  readonly types: readonly NumberType[] | undefined;
}

const { countries, country_calling_codes: codes } = metadata as unknown as {
  readonly countries: Readonly<Record<string, PlanData>>;
  readonly country_calling_codes: Readonly<Record<string, readonly string[]>>;
};
const { nonGeographic } = metadata as unknown as {
  readonly nonGeographic: Readonly<Record<string, PlanData>>;
};
const countryPlans = new Map(Object.keys(countries).map((name) => [name, once(countries[name]!)]));
/** The plans of each calling code; the first one is the plan of numbers of which the country is not known. */
const codePlans = new Map<string, readonly (() => NumberingPlan)[]>([
  ...Object.entries(codes).map(
    ([code, names]) => [code, names.map((name) => countryPlans.get(name)!)] as const,
  ),
  ...Object.entries(nonGeographic).map(([code, data]) => [code, [once(data)]] as const),
]);

/**
 * True for a phone number that is in use in its country, as `isValidPhoneNumber` of libphonenumber-js says with the smallest
 * set of its data. `number` has digits and punctuation, with a `+` before an international one; `country` (ISO 3166) is where
 * it would be dialled.
 */
export function isValidPhone(number: string, country?: string): boolean {
  const digits = number.replaceAll(/\D/g, "");
  const home = country === undefined ? undefined : countryPlans.get(country)!();
  const international = number.startsWith("+") ? digits : dropInternational(digits, home);
  if (international === undefined) return home !== undefined && isValidNational(digits, home, home);
  return isValidInternational(international);
}

function once(data: PlanData): () => NumberingPlan {
  let plan: NumberingPlan | undefined;
  return () => (plan ??= compilePlan(data));
}

function compilePlan(data: PlanData): NumberingPlan {
  const text = (place: number): string | undefined => (data[place] as string | 0) || undefined;
  const begin = (pattern: string | undefined): RegExp | undefined =>
    pattern === undefined ? undefined : new RegExp(`^(?:${pattern})`);
  const lengths = (data[Place.Lengths] as readonly number[] | 0) || [];
  const types = data[Place.Types] as readonly TypeData[] | undefined | 0;
  return {
    callingCode: text(Place.CallingCode)!,
    internationalPrefix: begin(text(Place.InternationalPrefix)),
    pattern: compileWhole(text(Place.Pattern)!),
    lengths,
    prefix: begin(text(Place.PrefixForParsing) ?? text(Place.NationalPrefix)),
    prefixRule: text(Place.PrefixRule),
    leadingDigits: begin(text(Place.LeadingDigits)),
    types: types
      ? types
          .filter((type) => type !== 0 && type[0] !== "")
          .map((type) => {
            const [pattern, own] = type as Exclude<TypeData, 0>;
            return { pattern: compileWhole(pattern), lengths: own ?? lengths };
          })
      : undefined,
  };
}

function compileWhole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`);
}

// The digits of an international number without what is dialled before it at home, and those of one without its `+`.
function dropInternational(digits: string, home: NumberingPlan | undefined): string | undefined {
  if (home === undefined) return undefined;
  const prefix = home.internationalPrefix?.exec(digits)?.[0];
  if (prefix !== undefined && prefix !== "" && digits[prefix.length] !== "0")
    return digits.slice(prefix.length);
  const { callingCode, pattern, lengths } = home;
  if (!digits.startsWith(callingCode)) return undefined;
  const shorter = dropPrefix(digits.slice(callingCode.length), home);
  const whole = dropPrefix(digits, home);
  const isShorter = !pattern.test(whole) && pattern.test(shorter);
  return isShorter || whole.length > (lengths.at(-1) ?? Infinity) ? digits : undefined;
}

function isValidInternational(digits: string): boolean {
  if (digits[0] === "0") return false;
  for (let size = 1; size <= CALLING_CODE_DIGITS_MAX && size <= digits.length; size++) {
    const plans = codePlans.get(digits.slice(0, size));
    if (plans !== undefined) return isValidNational(digits.slice(size), plans[0]!(), undefined);
  }
  return false;
}

// `plan` tells what is dialled before the number, `home` which plan counts if the number does not tell.
function isValidNational(
  digits: string,
  plan: NumberingPlan,
  home: NumberingPlan | undefined,
): boolean {
  if (digits === "") return false;
  const number = dropPrefix(digits, plan);
  if (number.length < NATIONAL_DIGITS_MIN || number.length > NATIONAL_DIGITS_MAX) return false;
  return isNumberOf(number, findPlan(number, plan) ?? home ?? plan);
}

// Several countries share some calling codes.
function findPlan(number: string, { callingCode }: NumberingPlan): NumberingPlan | undefined {
  const plans = codePlans.get(callingCode)!;
  if (plans.length === 1) return plans[0]!();
  for (const open of plans) {
    const plan = open();
    if (plan.leadingDigits?.test(number) ?? isTyped(number, plan)) return plan;
  }
  return undefined;
}

function isNumberOf(number: string, plan: NumberingPlan): boolean {
  return plan.types === undefined ? plan.pattern.test(number) : isTyped(number, plan);
}

function isTyped(number: string, { pattern, types }: NumberingPlan): boolean {
  if (types === undefined || !pattern.test(number)) return false;
  return types.some((type) => type.lengths.includes(number.length) && type.pattern.test(number));
}

function dropPrefix(digits: string, plan: NumberingPlan): string {
  const { prefix, prefixRule, pattern } = plan;
  const match = prefix?.exec(digits);
  if (prefix === undefined || !match) return digits;
  const hasGroup = match.length > 1 && Boolean(match.at(-1));
  const number =
    prefixRule !== undefined && hasGroup
      ? digits.replace(prefix, prefixRule)
      : digits.slice(match[0].length);
  if (number === digits) return digits;
  if (pattern.test(digits) && !pattern.test(number)) return digits;
  const { lengths } = findPlan(number, plan) ?? plan;
  const isPossible = lengths.length === 0 || isPossibleLength(number.length, lengths);
  return isPossible ? number : digits;
}

// A number that is longer than those of its plan may have an extension.
function isPossibleLength(length: number, lengths: readonly number[]): boolean {
  return lengths.includes(length) || length > lengths.at(-1)!;
}
