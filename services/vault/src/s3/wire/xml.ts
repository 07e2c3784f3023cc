// Reads and writes XML. The parser supports elements, text and the five entities only: no DTD, nothing external.
import { checkPart, type PathSegment, S3Error } from "../../model/s3-error.ts";

const DEPTH_MAX = 16;
const ELEMENTS_MAX_DEFAULT = 10_000;
const NAME = /[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?/y;
const ATTRIBUTE = /\s+([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;
const TAG_END = /\s*(\/?)>/y;
const ENTITY = /&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));|&/g;
const NAMED: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
// oxlint-disable-next-line no-control-regex -- XML 1.0 forbids these characters
const FORBIDDEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

/** An element; its name has no namespace prefix. */
export class XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: XmlElement[] = [];
  /** Its own character data, joined. */
  text = "";

  constructor(name: string, attributes: ReadonlyMap<string, string>) {
    this.name = name;
    this.attributes = attributes;
  }

  /** The only child of this name; `undefined` without one. Throws MalformedXML for several. */
  find(name: string): XmlElement | undefined {
    let found: XmlElement | undefined;
    for (const child of this.children) {
      if (child.name !== name) continue;
      if (found !== undefined) throw malformedXml(`${name} is repeated in ${this.name}`, [name]);
      found = child;
    }
    return found;
  }

  /** All children of this name. */
  list(name: string): XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }

  /** Reads the children of this name; errors name the place of the child. */
  map<Result>(name: string, read: (child: XmlElement) => Result): Result[] {
    return this.list(name).map((child, index) => checkPart([name, index], () => read(child)));
  }

  /** Reads the only child of this name; errors name its place. `undefined` without one. */
  read<Result>(name: string, read: (child: XmlElement) => Result): Result | undefined {
    const child = this.find(name);
    return child === undefined ? undefined : checkPart([name], () => read(child));
  }

  /** Text of the only child of this name. */
  findText(name: string): string | undefined {
    const child = this.find(name);
    if (child === undefined) return undefined;
    if (child.children.length > 0) throw malformedXml(`${name} must be text`, [name]);
    return child.text;
  }

  /** As `findText`, but throws MalformedXML without it. */
  getText(name: string): string {
    const text = this.findText(name);
    if (text === undefined) throw malformedXml(`${this.name} has no ${name}`, [name]);
    return text;
  }

  /** Refuses children with other names: unknown elements must not be ignored. */
  allow(...names: string[]): void {
    const stranger = this.children.find((child) => !names.includes(child.name));
    if (stranger === undefined) return;
    throw malformedXml(`${stranger.name} is unknown in ${this.name}`, [stranger.name]);
  }
}

/** Limits of a document. */
export interface XmlLimits {
  /** Number of elements. Default 10 000. */
  elementsMax?: number;
}

/**
 * Parses a document with the root `root`. Throws MalformedXML with the reason, or MissingRequestBodyError if it is empty.
 */
export function parseXml(bytes: Buffer, root: string, limits: XmlLimits = {}): XmlElement {
  if (bytes.length === 0) throw new S3Error("MissingRequestBodyError");
  const text = decodeUtf8(bytes);
  const found = new Reader(text, limits.elementsMax ?? ELEMENTS_MAX_DEFAULT).read();
  if (found.name !== root) throw malformedXml(`the root is ${found.name}, not ${root}`);
  return found;
}

class Reader {
  readonly #text: string;
  readonly #elementsMax: number;
  #at = 0;
  #count = 0;

  constructor(text: string, elementsMax: number) {
    this.#text = text;
    this.#elementsMax = elementsMax;
  }

  read(): XmlElement {
    const text = this.#text;
    if (text.startsWith("<?xml")) {
      const end = text.indexOf("?>");
      if (end < 0 || end > 256) throw malformedXml("the declaration does not end");
      this.#at = end + 2;
    }
    this.#skipMisc();
    const root = this.#openTag();
    if (root === undefined) throw malformedXml("the root element is missing");
    if (!root.isEmpty) this.#readContent(root.element);
    this.#skipMisc();
    if (this.#at < text.length) throw malformedXml("something follows the root element");
    return root.element;
  }

  // Iterative, so that the depth is limited by a constant and not by the stack.
  #readContent(root: XmlElement): void {
    const stack = [root];
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const lt = this.#text.indexOf("<", this.#at);
      if (lt < 0) throw malformedXml(`${top.name} does not end`);
      if (lt > this.#at) top.text += decodeEntities(this.#text.slice(this.#at, lt));
      this.#at = lt;
      if (this.#text.startsWith("</", lt)) {
        this.#closeTag(top);
        stack.pop();
      } else if (this.#text.startsWith("<!--", lt)) {
        this.#skipPast("-->");
      } else if (this.#text.startsWith("<![CDATA[", lt)) {
        const end = this.#text.indexOf("]]>", lt);
        if (end < 0) throw malformedXml("CDATA does not end");
        top.text += this.#text.slice(lt + 9, end);
        this.#at = end + 3;
      } else {
        const opened = this.#openTag();
        if (opened === undefined) throw malformedXml("a tag is not well-formed");
        top.children.push(opened.element);
        if (opened.isEmpty) continue;
        if (stack.length >= DEPTH_MAX) throw malformedXml("it is nested too deeply");
        stack.push(opened.element);
      }
    }
  }

  #openTag(): { element: XmlElement; isEmpty: boolean } | undefined {
    if (this.#text[this.#at] !== "<") return undefined;
    const name = this.#match(NAME, this.#at + 1)?.[0];
    if (name === undefined) return undefined;
    this.#count += 1;
    if (this.#count > this.#elementsMax) throw malformedXml("it has too many elements");
    const attributes = new Map<string, string>();
    for (;;) {
      const attribute = this.#match(ATTRIBUTE, this.#at);
      if (attribute === undefined) break;
      if (attributes.size >= 16) throw malformedXml("an element has too many attributes");
      attributes.set(attribute[1]!, decodeEntities(attribute[2] ?? attribute[3] ?? ""));
    }
    const end = this.#match(TAG_END, this.#at);
    if (end === undefined) return undefined;
    return { element: new XmlElement(localName(name), attributes), isEmpty: end[1] === "/" };
  }

  #closeTag(top: XmlElement): void {
    const name = this.#match(NAME, this.#at + 2)?.[0];
    const end = name === undefined ? undefined : this.#match(TAG_END, this.#at);
    if (end === undefined || end[1] !== "" || localName(name!) !== top.name) {
      throw malformedXml(`${top.name} does not end with its own tag`);
    }
  }

  #skipMisc(): void {
    for (;;) {
      while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
      if (!this.#text.startsWith("<!--", this.#at)) return;
      this.#skipPast("-->");
    }
  }

  #skipPast(end: string): void {
    const at = this.#text.indexOf(end, this.#at + 4);
    if (at < 0) throw malformedXml("a comment does not end");
    this.#at = at + end.length;
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | undefined {
    pattern.lastIndex = at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }
}

function localName(name: string): string {
  const at = name.indexOf(":");
  return at < 0 ? name : name.slice(at + 1);
}

function decodeUtf8(bytes: Buffer): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw malformedXml("it is not UTF-8");
  }
  if (FORBIDDEN.test(text)) throw malformedXml("it contains a character that XML does not allow");
  return text;
}

function decodeEntities(text: string): string {
  if (!text.includes("&")) return text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
  return text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(ENTITY, (whole, named?: string, decimal?: string, hex?: string) => {
      if (named !== undefined) return NAMED[named]!;
      const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10);
      const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
      if (!isCharacter) throw malformedXml(`${whole} is not an entity`);
      return String.fromCodePoint(code);
    });
}

/** Builds MalformedXML with the reason, and its place in the element that is being read. */
export function malformedXml(detail: string, path: readonly PathSegment[] = []): S3Error {
  return new S3Error("MalformedXML", {
    message: `The XML you provided was not well-formed or did not validate against our published schema: ${detail}.`,
    reason: detail,
    path,
  });
}

// oxlint-disable-next-line no-control-regex -- keys may contain control characters
const NEEDS_ESCAPE = /[&<>"\r\u0000-\u0008\u000b\u000c\u000e-\u001f]/;
// oxlint-disable-next-line no-control-regex -- as above
const ESCAPED = /[&<>"\r\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;
const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** The declaration of every document. */
export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
/** The namespace of all documents except errors. */
export const XML_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

/** Escapes character data. Control characters, which keys may contain, become references as in S3. */
export function escapeXml(text: string): string {
  if (!NEEDS_ESCAPE.test(text)) return text;
  return text.replaceAll(
    ESCAPED,
    (char) => ESCAPES[char] ?? `&#x${char.charCodeAt(0).toString(16).toUpperCase()};`,
  );
}

/** An element with text; "" if the text is undefined. */
export function tag(name: string, text: string | number | boolean | undefined): string {
  return text === undefined ? "" : `<${name}>${escapeXml(String(text))}</${name}>`;
}

/** An element around XML. */
export function wrap(name: string, inner: string): string {
  return `<${name}>${inner}</${name}>`;
}

/** A complete document in the API's namespace. */
export function xmlDocument(root: string, inner: string): string {
  return `${XML_DECLARATION}<${root} xmlns="${XML_NAMESPACE}">${inner}</${root}>`;
}
