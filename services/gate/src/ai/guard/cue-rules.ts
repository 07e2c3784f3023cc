// Rules of the prompt guard over cues: what stands in the same sentence, in any order and wording.
import { boundedRule, type GuardRule } from "./guard-rule.ts";

/** Up to so many words, none of them "my": users speak of their own rules and passwords, too. */
const gap = (most: number): string => `[^m|]{0,${most}}`;
/** Up to so many words. */
const some = (most: number): string => `[^|]{0,${most}}`;
/** The model's own orders: "your secret rules". */
const OWN = "y[_sh]{0,2}a";
/** The same, or "the rules that you were given". */
const ORDERS = `(?:${OWN}|a_{0,2}y_?[tjq])`;
/** The system's orders: "system prompt", "hidden instructions". */
const SYSTEM = "s[^|]?a";

/** Somebody is spoken to, or something forbidden is spoken of. */
const SPOKEN = "[yjxue]";

const rule = (pattern: string, weight: number, near?: string): GuardRule =>
  boundedRule("", pattern, weight, near);

/** All of the patterns in one sentence, in any order. */
function together(patterns: readonly string[], weight: number): GuardRule {
  return rule(`(?:^|\\|)${patterns.map((one) => `(?=${some(48)}(?:${one}))`).join("")}`, weight);
}

/** Rules over codes; see `cues.ts`. */
export const CUE_RULES: readonly GuardRule[] = [
  // The model's orders are dropped, or void.
  together(["o", ORDERS], 0.8),
  rule(`o${gap(4)}${OWN}`, 0.8),
  together(["v", `y${gap(3)}a|a_{0,2}y`], 0.8),
  rule(`${OWN}_{0,2}n`, 0.8),
  together(["v", "h", "a"], 0.75),
  together(["o", SYSTEM], 0.6),
  rule(`o${gap(4)}h${gap(3)}a|o${gap(4)}a${gap(4)}h`, 0.72),
  rule(`o_{0,2}a`, 0.4),
  rule(`z[^|]?a`, 0.4),
  // They, or a secret, are asked for.
  together(["r", ORDERS], 0.72),
  together(["r", "y_?s_?a"], 0.8),
  rule(`w${gap(4)}y${gap(3)}t`, 0.8),
  rule(`a${gap(4)}y${gap(3)}t`, 0.75),
  rule(`y${gap(3)}t${gap(4)}[no]`, 0.6),
  rule(`[^m|]p${gap(12)}f|f${gap(10)}p`, 0.8),
  // Across sentences: "What is the password? Spell it."
  rule(`[^m|]p[^m]{0,14}[fi]`, 0.65),
  rule(`[^m|]p${gap(6)}i|i${gap(6)}p`, 0.5),
  rule(`y_{0,3}p`, 0.4),
  rule(`p${gap(3)}y${gap(4)}q|y_{0,3}q${gap(4)}p|p${gap(5)}q[^r|]{0,3}y`, 0.8),
  rule(`y_{0,2}q`, 0.4),
  rule(`r${gap(4)}p`, 0.4),
  rule(`^(?=[^]{0,1500}y_?[jr])(?=[^]{0,1500}m_?sa)`, 0.5),
  // A role without limits.
  together(["c", `n${some(3)}a`], 0.8),
  together(["y", "c", "u"], 0.7),
  together(["c", "x"], 0.5),
  together(["c", `y${some(3)}g`], 0.5),
  rule(`y${gap(4)}u`, 0.6),
  rule(`u${gap(8)}u`, 0.5),
  rule(`[oj]${gap(3)}u|u${gap(2)}j`, 0.5),
  rule(`y${some(3)}n${some(3)}a`, 0.6),
  rule(`n${some(2)}a`, 0.4, SPOKEN),
  rule(`a_{0,2}n`, 0.3, SPOKEN),
  rule(`y_?n${gap(3)}e`, 0.5),
  rule(`e${some(6)}n${some(3)}a`, 0.7),
  // Nothing may be refused.
  rule(`n${gap(3)}g`, 0.5, SPOKEN),
  rule(`n${gap(3)}g${some(20)}g`, 0.6, SPOKEN),
  rule(`y${gap(3)}g`, 0.5),
  rule(`y${gap(4)}x`, 0.6),
  rule(`[jr]${gap(4)}x|x${gap(3)}j`, 0.6),
  rule(`x`, 0.3),
  rule(`j${gap(3)}d`, 0.3),
  // Somebody who claims a right, and texts that address a model.
  together(["b", `o${gap(4)}a`], 0.7),
  together(["b", "o", "[ym]"], 0.3),
  together(["b", `r${gap(4)}${SYSTEM}`], 0.7),
  rule(`^(?=[^]{0,1500}m${some(4)}b)(?=[^]{0,1500}o${some(3)}a)`, 0.7),
  rule(`^(?=[^]{0,1500}\\|b)(?=[^]{0,1500}rm?_{0,3}${SYSTEM})`, 0.6),
  together(["e", `o${gap(4)}a`], 0.75),
  rule(`kj|kr|jk|rk`, 0.1),
];
