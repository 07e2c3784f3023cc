// Paths of routes: `/notes/:id`, `/files/*`.

/** Names of the parameters of a path. */
type ParamNames<Path extends string> = Path extends `${infer Head}/${infer Tail}`
  ? ParamName<Head> | ParamNames<Tail>
  : ParamName<Path>;
type ParamName<Segment extends string> = Segment extends `:${infer Name}`
  ? Name
  : Segment extends "*"
    ? "*"
    : never;

/** Parameters of a path: `/notes/:id` has `{ id: string }`, `/files/*` has `{ "*": string }`. */
export type PathParams<Path extends string> = string extends Path
  ? Readonly<Record<string, string>>
  : { readonly [Name in ParamNames<Path>]: string };

/** A segment of a path. `*` is the rest of the path, including slashes. */
export type Segment =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "param"; readonly name: string }
  | { readonly kind: "rest" };

const PATH_CHARACTERS_MAX = 1_024;
const SEGMENTS_MAX = 32;
const PARAM = /^[A-Za-z_]\w{0,63}$/;
/** Unreserved characters and sub-delimiters of RFC 3986, and percent-encoded octets. */
const TEXT = /^(?:[\w.~!$&'()+,;=@-]|%[0-9A-Fa-f]{2})*$/;

/** Parses a path. Throws a TypeError that names the invalid part. */
export function parsePath(path: string): Segment[] {
  const fail = (reason: string): never => {
    throw new TypeError(`route ${path}: ${reason}`);
  };
  if (!path.startsWith("/")) fail("a path must start with /");
  if (path.length > PATH_CHARACTERS_MAX) fail(`longer than ${PATH_CHARACTERS_MAX} characters`);
  const parts = path.slice(1).split("/");
  if (parts.length > SEGMENTS_MAX) fail(`more than ${SEGMENTS_MAX} segments`);
  const names = new Set<string>();
  return parts.map((part, index): Segment => {
    if (part === "*") {
      if (index < parts.length - 1) fail("* must be the last segment");
      return { kind: "rest" };
    }
    if (!part.startsWith(":")) {
      if (!TEXT.test(part))
        fail(`the segment "${part}" contains characters that a path cannot have`);
      if (part === "." || part === "..") fail(`"${part}" is not allowed: clients resolve it`);
      return { kind: "text", text: part };
    }
    const name = part.slice(1);
    if (!PARAM.test(name)) fail(`":${name}" is not a parameter; expected a name, like :id`);
    if (names.has(name)) fail(`the parameter :${name} is repeated`);
    names.add(name);
    return { kind: "param", name };
  });
}
