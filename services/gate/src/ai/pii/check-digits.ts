// Check digits of cards, accounts and national identity numbers.

/** Luhn's check of digits (ISO/IEC 7812-1 annex B). */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digitAt(digits, digits.length - 1 - at);
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** ISO 7064 MOD 97-10 of an IBAN in upper case, without spaces. */
export function passesMod97(iban: string): boolean {
  let rest = 0;
  const moved = iban.slice(4) + iban.slice(0, 4);
  for (let at = 0; at < moved.length; at++) {
    const value = Number.parseInt(moved[at]!, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** ISO 7064 MOD 11,10, of the German tax number. */
export function passesMod11And10(digits: string): boolean {
  let product = 10;
  for (let at = 0; at < digits.length - 1; at++) {
    const sum = (digitAt(digits, at) + product) % 10;
    product = ((sum === 0 ? 10 : sum) * 2) % 11;
  }
  return (11 - product) % 10 === digitAt(digits, digits.length - 1);
}

/** True if the weighted sum of the digits leaves `rest` modulo `modulus`. */
export function passesWeights(
  digits: string,
  weights: readonly number[],
  modulus: number,
  rest = 0,
): boolean {
  const sum = weights.reduce((total, weight, at) => total + weight * digitAt(digits, at), 0);
  return ((sum % modulus) + modulus) % modulus === rest;
}

const VERHOEFF_PRODUCT = [
  "0123456789",
  "1234067895",
  "2340178956",
  "3401289567",
  "4012395678",
  "5987604321",
  "6598710432",
  "7659821043",
  "8765932104",
  "9876543210",
];
const VERHOEFF_POSITION = [
  "0123456789",
  "1576283094",
  "5803796142",
  "8916043527",
  "9453126870",
  "4286573901",
  "2793806415",
  "7046913258",
];

/** Verhoeff's check, of the Indian Aadhaar number. */
export function passesVerhoeff(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digitAt(digits, digits.length - 1 - at);
    const placed = digitAt(VERHOEFF_POSITION[at % 8]!, digit);
    sum = digitAt(VERHOEFF_PRODUCT[sum]!, placed);
  }
  return sum === 0;
}

/** The digit at a place. */
export function digitAt(digits: string, at: number): number {
  return digits.charCodeAt(at) - 0x30;
}
