// A minimal XML parser, independent of the store's. Responses contain only elements, text and entities.

const TOKEN = /<(\/?)([\w.:-]+)([^<>]*?)(\/?)>|([^<]+)/g;
const ENTITIES: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** An element. */
export class Element {
  readonly name: string;
  /** As written in the tag. */
  readonly attributes: string;
  readonly children: Element[] = [];
  text = "";

  constructor(name: string, attributes: string) {
    this.name = name;
    this.attributes = attributes;
  }

  /** Returns all elements at a path such as `Contents/Key`. */
  all(path: string): Element[] {
    return path
      .split("/")
      .reduce<Element[]>(
        (found, name) =>
          found.flatMap((item) => item.children.filter((child) => child.name === name)),
        [this],
      );
  }

  /** Returns the texts of all elements at a path. */
  texts(path: string): string[] {
    return this.all(path).map((item) => item.text);
  }

  /** Returns the text of the only element at a path; undefined if missing. */
  get(path: string): string | undefined {
    const found = this.texts(path);
    if (found.length > 1) throw new Error(`${path} came ${found.length} times`);
    return found[0];
  }
}

/** Parses a document; throws if it is not well-formed. */
export function parseDocument(text: string): Element {
  const body = text.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\s*/, "");
  if (body === text) throw new Error(`there is no XML declaration: ${text.slice(0, 100)}`);
  const top = new Element("", "");
  const stack = [top];
  let at = 0;
  for (const match of body.matchAll(TOKEN)) {
    if (match.index !== at) throw new Error(`not well-formed at ${at}: ${body.slice(at, at + 50)}`);
    at += match[0].length;
    const [, closing, name, attributes, empty, characters] = match;
    const parent = stack.at(-1)!;
    if (characters !== undefined) parent.text += decodeEntities(characters);
    else if (closing === "/") {
      if (stack.pop()!.name !== name) throw new Error(`${name} ends where it did not begin`);
    } else {
      const element = new Element(name!, attributes!.trim());
      parent.children.push(element);
      if (empty === "") stack.push(element);
    }
  }
  if (at !== body.length || stack.length !== 1 || top.children.length !== 1) {
    throw new Error("the document does not end");
  }
  return top.children[0]!;
}

function decodeEntities(text: string): string {
  return text.replaceAll(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex, decimal, named) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(String(hex), 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    const char = ENTITIES[String(named)];
    if (char === undefined) throw new Error(`${whole} is no entity`);
    return char;
  });
}
