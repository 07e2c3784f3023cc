// Names that people read: letters of one script that pass for those of another.

// Scripts with letters that look like those of another script in this list (Unicode TS 39, confusables). Other
// scripts mix legitimately: Han with Latin, and with the Japanese and Korean scripts.
const LOOK_ALIKE_SCRIPTS = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Coptic}/u,
  /\p{Script=Lisu}/u,
  /\p{Script=Deseret}/u,
];

/** True for a word with letters of several scripts that look alike, such as `раypal` with a Cyrillic `ра`. */
export function mixesLookAlikes(word: string): boolean {
  return LOOK_ALIKE_SCRIPTS.filter((script) => script.test(word)).length > 1;
}
