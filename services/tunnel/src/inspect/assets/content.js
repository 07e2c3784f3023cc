// Shows the content of a message: formatted JSON, forms, images, text. HTML is shown as text.
import { create, formatBytes } from "./dom.js";

/** @typedef {import("./relay.js").Body} Body */

const FORMATTED_CHARACTERS_MAX = 300_000;
const HEX_BYTES_MAX = 256;
const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon|svg\+xml)/;

/** Addresses of images on the page; they hold memory until they are revoked. @type {string[]} */
const addresses = [];

/** Frees the images that were shown before. */
export function releaseImages() {
  for (const address of addresses.splice(0)) URL.revokeObjectURL(address);
}

/** Elements that show a content. @param {Body} body @param {string} mediaType @returns {Node[]} */
export function showContent(body, mediaType) {
  if (body.bytes === 0) return [create("p", { className: "note" }, "No body.")];
  const notes = [
    ...(body.decoded === undefined ? [] : [`decoded from ${body.decoded}`]),
    ...(body.truncated ? [`only the first ${formatBytes(body.bytes)} were captured`] : []),
  ];
  const note = notes.length === 0 ? [] : [create("p", { className: "note" }, notes.join(", "))];
  return [showByType(body, mediaType.trim().toLowerCase()), ...note];
}

/** @param {Body} body @param {string} mediaType */
function showByType(body, mediaType) {
  const { encoding, text, bytes } = body;
  if (IMAGES.test(mediaType) && !body.truncated) return showImage(body, mediaType);
  if (encoding === "base64") return showBinary(text, bytes);
  if (mediaType.includes("x-www-form-urlencoded"))
    return showFields([...new URLSearchParams(text)]);
  if (mediaType.startsWith("multipart/form-data")) return showParts(text, mediaType);
  const json = /[/+]json/.test(mediaType) || /^\s*[[{]/.test(text) ? formatJson(text) : undefined;
  if (json === undefined) return create("pre", {}, text);
  return json.length > FORMATTED_CHARACTERS_MAX ? create("pre", {}, json) : colourJson(json);
}

/** Scripts in images do not run. @param {Body} body @param {string} mediaType */
function showImage({ encoding, text }, mediaType) {
  const bytes =
    encoding === "base64" ? Uint8Array.fromBase64(text) : new TextEncoder().encode(text);
  const address = URL.createObjectURL(new Blob([bytes], { type: mediaType.split(";")[0] ?? "" }));
  addresses.push(address);
  return create("img", { src: address, alt: "Image in the body" });
}

/** @param {string} base64 @param {number} size */
function showBinary(base64, size) {
  const bytes = Uint8Array.fromBase64(base64).subarray(0, HEX_BYTES_MAX);
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "."));
    lines.push(`${at.toString(16).padStart(4, "0")}  ${hex.padEnd(47)}  ${text.join("")}`);
  }
  const more = size > bytes.length ? `\n… ${formatBytes(size)} of binary content` : "";
  return create("pre", {}, lines.join("\n") + more);
}

/** @param {(readonly [string, string])[]} fields */
export function showFields(fields) {
  const list = create("dl", { className: "fields" });
  for (const [name, value] of fields) {
    list.append(create("dt", {}, name), create("dd", {}, value));
  }
  return list;
}

/** @param {string} text @param {string} mediaType */
function showParts(text, mediaType) {
  const boundary = /boundary="?([^";]+)"?/.exec(mediaType)?.[1];
  // The type was lowered for its comparison; the first line of the text has the boundary as sent.
  const line = text.slice(0, text.indexOf("\r\n"));
  if (boundary === undefined || line.toLowerCase() !== `--${boundary}`)
    return create("pre", {}, text);
  const parts = text.split(line).slice(1, -1);
  return showFields(
    parts.map((part) => {
      const [head = "", ...rest] = part.replace(/^\r\n/, "").split("\r\n\r\n");
      const name = /name="([^"]*)"/.exec(head)?.[1] ?? "";
      const file = /filename="([^"]*)"/.exec(head)?.[1];
      const value = rest.join("\r\n\r\n").replace(/\r\n$/, "");
      return [file === undefined ? name : `${name} (${file})`, value];
    }),
  );
}

/** Numbers keep their digits: the text is formatted, not read and written. @param {string} text */
export function formatJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let depth = 0;
  const indent = () => `\n${"  ".repeat(depth)}`;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|\s+/g, (token, at) => {
    switch (token) {
      case "{":
      case "[": {
        const isEmpty = /^\s*[}\]]/.test(text.slice(at + 1, at + 64));
        depth++;
        return isEmpty ? token : token + indent();
      }
      case "}":
      case "]": {
        depth--;
        const isEmpty = /[{[]\s*$/.test(text.slice(Math.max(0, at - 64), at));
        return isEmpty ? token : indent() + token;
      }
      case ":":
        return ": ";
      case ",":
        return token + indent();
      default:
        return token.startsWith('"') ? token : "";
    }
  });
}

/** @param {string} json */
function colourJson(json) {
  const block = create("pre");
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*/g;
  let end = 0;
  for (const found of json.matchAll(token)) {
    const [whole, string, colon] = found;
    block.append(json.slice(end, found.index));
    const className = string === undefined ? "number" : colon === undefined ? "string" : "key";
    block.append(create("span", { className }, string ?? whole), colon ?? "");
    end = found.index + whole.length;
  }
  block.append(json.slice(end));
  return block;
}
