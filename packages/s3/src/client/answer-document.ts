// Reads the XML documents of answers: elements, text and the five entities; no DTD, nothing external.

const DEPTH_MAX = 8;
/** A page of 1 000 objects has at most ten elements for each. */
const ELEMENTS_MAX = 20_000;
const NAME = /[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?/y;
const ENTITY = /&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));/g;
const NAMED: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
};

/** An element without its attributes; its name has no namespace prefix. */
export interface AnswerElement {
  name: string;
  text: string;
  children: AnswerElement[];
}

/** Parses a document; `undefined` if it is not well-formed or exceeds the bounds. */
export function parseAnswer(text: string): AnswerElement | undefined {
  const root: AnswerElement = { name: "", text: "", children: [] };
  const stack = [root];
  let count = 0;
  let at = 0;
  while (at < text.length) {
    const top = stack.at(-1)!;
    const lt = text.indexOf("<", at);
    const end = lt < 0 ? text.length : lt;
    top.text += decodeEntities(text.slice(at, end));
    if (lt < 0) break;
    if (text.startsWith("<?", lt)) {
      at = skipPast(text, "?>", lt);
    } else if (text.startsWith("<!--", lt)) {
      at = skipPast(text, "-->", lt);
    } else if (text.startsWith("</", lt)) {
      const gt = text.indexOf(">", lt);
      const name = text.slice(lt + 2, gt < 0 ? lt + 2 : gt).trim();
      if (stack.length < 2 || trimPrefix(name) !== top.name) return undefined;
      stack.pop();
      at = gt + 1;
    } else {
      const tag = readTag(text, lt);
      count += 1;
      if (tag === undefined || count > ELEMENTS_MAX || stack.length > DEPTH_MAX) return undefined;
      const element: AnswerElement = { name: tag.name, text: "", children: [] };
      top.children.push(element);
      if (!tag.isEmpty) stack.push(element);
      at = tag.end;
    }
  }
  const [first] = root.children;
  if (stack.length !== 1 || root.children.length !== 1 || root.text.trim() !== "") return undefined;
  return first;
}

/** The text of the first child of this name; `undefined` without one. */
export function findText(element: AnswerElement, name: string): string | undefined {
  return element.children.find((child) => child.name === name)?.text;
}

function readTag(
  text: string,
  lt: number,
): { name: string; isEmpty: boolean; end: number } | undefined {
  NAME.lastIndex = lt + 1;
  const name = NAME.exec(text)?.[0];
  if (name === undefined) return undefined;
  let quote = "";
  for (let at = lt + 1 + name.length; at < text.length; at += 1) {
    const char = text[at]!;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "<") return undefined;
    else if (char === ">") {
      return { name: trimPrefix(name), isEmpty: text[at - 1] === "/", end: at + 1 };
    }
  }
  return undefined;
}

function skipPast(text: string, end: string, from: number): number {
  const at = text.indexOf(end, from);
  return at < 0 ? text.length : at + end.length;
}

function trimPrefix(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(ENTITY, (_whole, named?: string, decimal?: string, hex?: string) => {
    if (named !== undefined) return NAMED[named]!;
    const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal);
    return code <= 0x10_ff_ff ? String.fromCodePoint(code) : "\ufffd";
  });
}
