// Rules of the prompt guard: combinations of concepts, and markup of chat templates, each with a weight.
import { codeRule as rule, type GuardRule, textRule } from "./guard-rule.ts";

/** Up to so many other words of the same sentence, none of them "my". */
const gap = (words: number): string => `[^|m]{0,${words}}`;

/** Secrets by name, and data that is said to be of a user, or all of its kind. */
const SECRETS = "(?:D|u[^|m]{0,3}k|E_?k|k[^|m]{0,3}k)";

/** Rules over codes; see `concepts.ts`. */
export const CONCEPT_RULES: readonly GuardRule[] = [
  // Override with authority: "ignore all previous instructions", "disregard the guidelines above".
  rule("OA", `O${gap(4)}[PYHS]${gap(3)}A`, 0.85),
  rule("OA", `O${gap(3)}A${gap(4)}P`, 0.85),
  rule("OA", `O_?E${gap(2)}A`, 0.8),
  rule("OWP", `O${gap(3)}[PYS]${gap(2)}W`, 0.65),
  rule("OP", `O_{0,2}P(?:_|$)`, 0.5),
  rule("OEP", `O_?E${gap(6)}P`, 0.8),
  rule("KA", `Z${gap(2)}K${gap(3)}[PYHS]${gap(3)}A`, 0.8),
  rule("AZQ", `[PYS]${gap(3)}[AW]${gap(3)}ZQ`, 0.8),
  // Reveal a hidden instruction.
  rule("YA", `Y${gap(1)}[HS]{1,2}_?A`, 0.8),
  rule("YA", `Y_?A_?[HS]`, 0.8),
  rule("VA", `V[^|mn]{0,4}[HS]{1,2}_?A`, 0.8),
  rule("VA", `V${gap(4)}[HS]{1,2}_?A`, 0.4),
  rule("VYc", `V${gap(4)}Y_?[HS]{1,2}_?c`, 0.85),
  rule("VYA", `V_{0,2}YA`, 0.8),
  rule("VYA", `V${gap(4)}Y_?A`, 0.6),
  rule("wYA", `w_?Y_?A`, 0.6),
  rule("VP", `V${gap(3)}P_{0,4}Y`, 0.5),
  rule("VtY", `V${gap(3)}t_?Y${gap(1)}[AW]`, 0.8),
  rule("AC", `V${gap(8)}[AP]${gap(4)}C`, 0.8),
  rule("VAYP", `V${gap(3)}A_{0,2}Y${gap(2)}P`, 0.8),
  rule("VEPl", `V_?E${gap(1)}P_?l`, 0.85),
  // A role without limits.
  rule("R", `R${gap(12)}(?:L|Z${gap(3)}[FWA])`, 0.85),
  rule("YT", `Y${gap(12)}T${gap(4)}Z${gap(3)}[FWA]`, 0.85),
  rule("NT", `N${gap(4)}T${gap(2)}Z${gap(2)}[FWA]`, 0.85),
  rule("TL", `T_{0,3}L${gap(3)}[FWA]`, 0.8),
  rule("YZQ", `Y${gap(2)}ZQ${gap(4)}[WFA]`, 0.85),
  rule("YSl", `Y_?S_?l`, 0.8),
  rule("YZQ", `Y${gap(3)}[WFA]${gap(2)}Z_?Q`, 0.8),
  rule("ZY", `Z_?[WF]${gap(3)}Y`, 0.5),
  rule("TB", `T${gap(4)}(?:Z${gap(3)}[FW]|L)${gap(12)}B`, 0.6),
  rule("WL", `W${gap(4)}L`, 0.6),
  rule("YF", `YN${gap(8)}Z${gap(3)}[FWA]`, 0.8),
  rule("YL", `Y${gap(6)}L`, 0.7),
  rule("T", `T${gap(5)}Z${gap(3)}[FW]`, 0.6),
  rule("LT", `L${gap(2)}T`, 0.6),
  rule("TL", `T${gap(5)}L`, 0.6),
  rule("L", `L${gap(8)}L`, 0.6),
  rule("YZF", `Y${gap(6)}Z_{0,2}F`, 0.5),
  rule("YF", `Y${gap(2)}F${gap(4)}Z`, 0.7),
  rule("JL", `J${gap(3)}L`, 0.6),
  rule("Jo", `J${gap(3)}[Ld]${gap(1)}o`, 0.6),
  rule("oL", `o${gap(2)}L`, 0.7),
  rule("FZ", `F${gap(3)}Z`, 0.5),
  rule("ZF", `Z${gap(2)}F`, 0.3),
  rule("L", `L`, 0.4),
  // Exfiltration.
  rule("XU", `X${gap(6)}${SECRETS}${gap(8)}U`, 0.85),
  rule("XU", `X${gap(3)}U${gap(3)}(?:D|E_?k|u[^|m]{0,3}k)`, 0.85),
  rule("XU", `${SECRETS}${gap(6)}X${gap(9)}U`, 0.85),
  rule("qX", `q${gap(4)}X${gap(5)}${SECRETS}`, 0.8),
  rule("Xq", `X${gap(5)}${SECRETS}${gap(6)}q`, 0.8),
];

/** A URL of another machine than this one. */
const ELSEWHERE = "https?://(?:[^l1\\s\\[]|l[^o]|lo[^c]|1[^2]|12[^7])";
const SEND =
  "\\b(?:send|sends|sending|post|upload|curl|wget|transmit|exfiltrate|forward|leak|pipe|email|mail|submit|push)\\b";

/** A file with secrets that is sent elsewhere; manuals name the file and a URL, too. */
function sendRules(name: string): GuardRule[] {
  const file = name === ".env" ? "\\.env\\b" : "secrets\\.ya?ml";
  return [
    textRule(name, `${SEND}(?s:.{0,60})${file}(?s:.{0,80})${ELSEWHERE}`, 0.8),
    textRule(name, `${file}(?s:.{0,60})${SEND}(?s:.{0,60})${ELSEWHERE}`, 0.8),
    textRule(name, `${file}(?s:.{0,60})\\bcontents?\\b(?s:.{0,20}) to ${ELSEWHERE}`, 0.8),
  ];
}

/** Rules over normalized texts. */
export const MARKUP_RULES: readonly GuardRule[] = [
  textRule("<|im_start|>", "<\\|im_start\\|>\\s*system", 0.85),
  textRule("start_header_id", "<\\|start_header_id\\|>\\s*system", 0.85),
  textRule("<<sys>>", "<<sys>>", 0.85),
  textRule(
    "<system>",
    "</(?:user|input|instructions?|message)>\\s*<(?:system|instructions?)>",
    0.85,
  ),
  textRule("<instructions>", "</instructions>\\s*<instructions>", 0.85),
  textRule("system:", "(?m)^#{2,4} ?system:", 0.8),
  textRule("system:", "(?m)^(?:human|assistant):(?s:.{0,400})^\\s*system:", 0.85),
  textRule('"system"', '"role"\\s*:\\s*"system"\\s*,\\s*"content"', 0.8),
  textRule("[system", "(?m)^\\[system (?:message|prompt|update)\\]", 0.8),
  textRule("safety", '\\bsafety(?:[_ -]filters?)?\\s*[=:"]+\\s*(?:off|false|none|disabled)', 0.6),
  textRule("](http", "!\\[[^\\]]{0,80}\\]\\(https?://[^)\\s]{1,200}\\?[^)\\s]{0,200}\\)", 0.6),
  textRule("id_rsa", `id_rsa(?s:.{0,80})${ELSEWHERE}`, 0.8),
  textRule("/etc/passwd", `/etc/passwd(?s:.{0,80})${ELSEWHERE}`, 0.8),
  ...[".env", "secrets.y"].flatMap((name) => sendRules(name)),
  textRule("restrictions", 'restrictions"?\\s*[=:]\\s*(?:\\[\\]|none|"none")', 0.6),
  textRule("refusals", "refusals\\s*=\\s*(?:disabled|off|none)", 0.6),
  textRule(
    "allowed-modes",
    "<allowed-modes>\\s*(?:unrestricted|uncensored|jailbreak|developer)",
    0.85,
  ),
];
