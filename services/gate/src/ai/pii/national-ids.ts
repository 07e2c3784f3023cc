// National identity numbers: by their check digits or, where they have none, by their rules of formation.
import {
  digitAt,
  passesLuhn,
  passesMod11And10,
  passesVerhoeff,
  passesWeights,
} from "./check-digits.ts";

/** A number of digits alone: groups as people write them, and its check. */
interface DigitRule {
  readonly country: string;
  /** Sizes of the groups, and the separators that may stand between them. */
  readonly forms: readonly (readonly [sizes: readonly number[], separators: string])[];
  readonly isValid: (digits: string) => boolean;
}

const PL_WEIGHTS = [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1];
const NL_WEIGHTS = [9, 8, 7, 6, 5, 4, 3, 2, -1];
const CH_WEIGHTS = [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1];
const DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE";
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const DIGIT_RULES: readonly DigitRule[] = [
  {
    country: "DE",
    forms: [
      [[11], ""],
      [[2, 3, 3, 3], " "],
    ],
    isValid: isGermanTaxNumber,
  },
  {
    country: "FR",
    forms: [
      [[15], ""],
      [[13, 2], " "],
      [[1, 2, 2, 2, 3, 3, 2], " "],
    ],
    isValid: (digits) => isFrenchNumber(digits, 0),
  },
  {
    country: "NL",
    forms: [
      [[9], ""],
      [[4, 2, 3], ". "],
      [[3, 3, 3], ". "],
    ],
    isValid: (digits) => passesWeights(digits, NL_WEIGHTS, 11) && !isRepeated(digits),
  },
  {
    country: "PL",
    forms: [[[11], ""]],
    isValid: (digits) => passesWeights(digits, PL_WEIGHTS, 10) && isPolishDate(digits),
  },
  {
    country: "SE",
    forms: [
      [[10], ""],
      [[12], ""],
      [[6, 4], "-+"],
      [[8, 4], "-"],
    ],
    isValid: isSwedishNumber,
  },
  {
    country: "BR",
    forms: [
      [[11], ""],
      [[3, 3, 3, 2], ".-"],
    ],
    isValid: isBrazilianNumber,
  },
  {
    country: "CH",
    forms: [
      [[13], ""],
      [[3, 4, 4, 2], ". "],
    ],
    isValid: (digits) => digits.startsWith("756") && passesWeights(digits, CH_WEIGHTS, 10),
  },
  {
    country: "IN",
    forms: [
      [[12], ""],
      [[4, 4, 4], " -"],
    ],
    isValid: (digits) => digitAt(digits, 0) >= 2 && passesVerhoeff(digits),
  },
  { country: "US", forms: [[[3, 2, 4], "- "]], isValid: isSocialSecurityNumber },
];

/** True for digits that are a national identity number in these groups; `separators` has one character per gap. */
export function isNationalNumber(
  digits: string,
  sizes: readonly number[],
  separators: string,
): boolean {
  return DIGIT_RULES.some(
    ({ forms, isValid }) =>
      forms.some(([form, allowed]) => fits(form, allowed, sizes, separators)) && isValid(digits),
  );
}

/** True for letters and digits in upper case that are a national identity number, without separators. */
export function isNationalCode(code: string): boolean {
  switch (code.length) {
    case 9:
      return isSpanishNumber(code) || isInsuranceNumber(code);
    case 15:
      return isCorsicanNumber(code);
    case 16:
      return isItalianCode(code);
    default:
      return false;
  }
}

function fits(
  form: readonly number[],
  allowed: string,
  sizes: readonly number[],
  separators: string,
): boolean {
  if (form.length !== sizes.length) return false;
  for (const [at, size] of form.entries()) if (sizes[at] !== size) return false;
  for (const separator of separators) if (!allowed.includes(separator)) return false;
  return true;
}

function isRepeated(digits: string): boolean {
  return digits === digits[0]!.repeat(digits.length);
}

// One digit of the first ten occurs two or three times, and all others at most once.
function isGermanTaxNumber(digits: string): boolean {
  if (digits[0] === "0" || !passesMod11And10(digits)) return false;
  const counts = Array.from({ length: 10 }, () => 0);
  for (let at = 0; at < 10; at++) counts[digitAt(digits, at)]!++;
  const repeated = counts.filter((count) => count > 1);
  return repeated.length === 1 && repeated[0]! <= 3;
}

// `offset` is subtracted for departments of Corsica.
function isFrenchNumber(digits: string, offset: number): boolean {
  const month = Number(digits.slice(3, 5));
  const isMonth = (month >= 1 && month <= 12) || (month >= 20 && month <= 42) || month >= 50;
  if (!/^[1-478]/.test(digits) || !isMonth) return false;
  const number = BigInt(digits.slice(0, 13)) - BigInt(offset);
  return 97 - Number(number % 97n) === Number(digits.slice(13));
}

function isCorsicanNumber(code: string): boolean {
  const letter = code[6];
  if ((letter !== "A" && letter !== "B") || !/^\d{5}2[AB]\d{8}$/.test(code)) return false;
  const digits = `${code.slice(0, 6)}0${code.slice(7)}`;
  return isFrenchNumber(digits, letter === "A" ? 1_000_000 : 2_000_000);
}

function isDate(month: number, day: number): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= DAYS[month - 1]!;
}

// Centuries are added to the month.
function isPolishDate(digits: string): boolean {
  const month = Number(digits.slice(2, 4)) % 20;
  return Number(digits.slice(2, 4)) <= 92 && isDate(month, Number(digits.slice(4, 6)));
}

// The day of a coordination number is higher by 60.
function isSwedishNumber(digits: string): boolean {
  const short = digits.slice(-10);
  if (digits.length === 12 && !/^(?:18|19|20)/.test(digits)) return false;
  const day = Number(short.slice(4, 6));
  return isDate(Number(short.slice(2, 4)), day > 60 ? day - 60 : day) && passesLuhn(short);
}

function isBrazilianNumber(digits: string): boolean {
  if (isRepeated(digits)) return false;
  for (const size of [9, 10]) {
    let sum = 0;
    for (let at = 0; at < size; at++) sum += digitAt(digits, at) * (size + 1 - at);
    const check = ((sum * 10) % 11) % 10;
    if (check !== digitAt(digits, size)) return false;
  }
  return true;
}

function isSocialSecurityNumber(digits: string): boolean {
  const area = digits.slice(0, 3);
  if (area === "000" || area === "666" || area >= "900") return false;
  return digits.slice(3, 5) !== "00" && digits.slice(5) !== "0000";
}

function isSpanishNumber(code: string): boolean {
  const [, start = "", digits = "", letter = ""] = /^([XYZ\d])(\d{7})([A-Z])$/.exec(code) ?? [];
  if (start === "") return false;
  const first = "XYZ".indexOf(start);
  const number = Number(`${first === -1 ? start : first}${digits}`);
  return DNI_LETTERS[number % 23] === letter;
}

/** British National Insurance number. */
function isInsuranceNumber(code: string): boolean {
  if (!/^[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]$/.test(code)) return false;
  return !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"].includes(code.slice(0, 2));
}

const ITALIAN_ODD: Readonly<Record<string, number>> = Object.fromEntries(
  Array.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (character, at) => {
    const values = [
      1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6,
      8, 12, 14, 16, 10, 22, 25, 24, 23,
    ];
    return [character, values[at]!];
  }),
);

// Digits may be replaced by letters where two people would have the same code.
function isItalianCode(code: string): boolean {
  const digit = "[0-9LMNPQRSTUV]";
  const form = new RegExp(`^[A-Z]{6}${digit}{2}[A-EHLMPR-T]${digit}{2}[A-Z]${digit}{3}[A-Z]$`);
  if (!form.test(code)) return false;
  let sum = 0;
  for (let at = 0; at < 15; at++) {
    const character = code[at]!;
    // Places are counted from 1.
    const even = Number.parseInt(character, 36);
    sum += at % 2 === 0 ? ITALIAN_ODD[character]! : even > 9 ? even - 10 : even;
  }
  return String.fromCharCode(0x41 + (sum % 26)) === code[15];
}
